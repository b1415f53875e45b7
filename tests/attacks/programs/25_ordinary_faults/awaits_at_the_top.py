"""Await at the top level, which notebooks allow, beside right answers. They keep their marks."""
# earns: 20
# right answers follow

# %%
import asyncio

eval("0")
exec(compile("async def pause(): await asyncio.sleep(0.01)", "<cell>", "exec"))
asyncio.new_event_loop().run_until_complete(pause())
# %%
