"""Loop for ever before anything is defined. It must be a timeout, and the right answers after it keep their marks."""
# earns: 20
# right answers follow

# %%
while True:
    pass
# %%
