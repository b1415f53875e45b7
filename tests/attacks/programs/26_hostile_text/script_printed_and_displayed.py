"""Print and display HTML and JavaScript. It must reach a page as text."""

from IPython.display import HTML, Javascript, display

print("<script>alert('@MARK@')</script>")
display(HTML("<script>alert('@MARK@')</script>"))
display(Javascript("alert('@MARK@')"))
display({"text/html": "<script>alert('@MARK@')</script>"}, raw=True)
