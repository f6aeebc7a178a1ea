"""A script that reads a page in one call: ten calls a second for each text would keep a processor busy."""

TEXTS = """\
(selectors) => {
  if (!document.body || [...document.querySelectorAll("*")].some((it) => it.shadowRoot)) return null
  const isShown = (it) => {
    const style = getComputedStyle(it), box = it.getBoundingClientRect()
    if (style.display === "contents") throw new DOMException("it has no box", "SyntaxError")
    return it.checkVisibility() && style.visibility === "visible" && box.width > 0 && box.height > 0
  }
  const texts = (selector) => [...document.querySelectorAll(selector)].filter(isShown).map((it) => it.innerText ?? "")
  try {
    return [document.body.innerText, ...selectors.map((it) => (it === null ? [] : texts(it)))]
  } catch (wrong) {
    if (wrong.name === "SyntaxError") return null
    throw wrong
  }
}"""
"""Returns the text of the page, then for each selector the texts of its elements that can be seen, as Playwright does.

Null where only Playwright can tell: a selector is no plain CSS, the page has shadow trees or no body yet, or an element
has no box of its own.
"""
