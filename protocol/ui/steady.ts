/** How long after the last touch the page stays steady, in milliseconds. */
const AT_WORK_MS = 30_000

/** Distance from the top of the document, in pixels: scrolling does not change it. */
const topOf = (element: Element): number => element.getBoundingClientRect().top + scrollY

/** The touched element and its ancestors, in case the element disappears. */
let anchors: { element: Element; top: number }[] = []
/** When a person last used the page: `Event.timeStamp`. */
let usedAt = -Infinity
/** Replaces the height of content that disappeared. */
const spacer = document.createElement('div')
/** Makes a short page long enough to scroll. */
const room = document.createElement('div')

/**
 * Keeps the touched element at its place in the window. If content above it appears or disappears, the page scrolls by
 * the same height. If the page cannot scroll, a spacer compensates. 30 s after the last touch this ends.
 */
export function keepSteady(main: HTMLElement): void {
  main.before(spacer)
  main.after(room)
  const follow = (event: Event): void => {
    usedAt = event.timeStamp
    anchors = []
    for (let at = event.target; at instanceof Element && at !== main; at = at.parentElement)
      anchors.push({ element: at, top: 0 })
    if (!(event.target instanceof Element && main.contains(event.target))) anchors = []
    measure()
  }
  for (const type of ['pointermove', 'pointerdown', 'pointerup', 'focusin', 'keydown'] as const)
    addEventListener(type, follow, { capture: true, passive: true })
  // Lists within the page scroll, too.
  addEventListener('scroll', measure, { capture: true, passive: true })
  new ResizeObserver(restore).observe(main)
  new MutationObserver(restore).observe(main, {
    childList: true,
    subtree: true,
    characterData: true,
    attributeFilter: ['class', 'open', 'hidden'],
  })
}

function measure(): void {
  for (const anchor of anchors) anchor.top = topOf(anchor.element)
}

function restore(): void {
  const anchor = anchors.find(({ element }) => element.isConnected)
  if (!anchor) return
  if (performance.now() - usedAt > AT_WORK_MS) {
    setHeight(spacer, 0)
    setHeight(room, 0)
    return measure()
  }
  const moved = topOf(anchor.element) - anchor.top
  if (Math.abs(moved) >= 1) takeBack(moved)
  measure()
}

/** `moved`: how far the anchor is below its place. */
function takeBack(moved: number): void {
  // The spacer shrinks first.
  const given = Math.min(Math.max(moved, 0), spacer.offsetHeight)
  if (given > 0) setHeight(spacer, spacer.offsetHeight - given)
  const left = moved - given
  const { scrollHeight, clientHeight } = document.documentElement
  const missingBelow = scrollY + left - (scrollHeight - clientHeight)
  if (missingBelow > 0) setHeight(room, room.offsetHeight + Math.ceil(missingBelow))
  const missingAbove = -(scrollY + left)
  if (missingAbove > 0) setHeight(spacer, spacer.offsetHeight + missingAbove)
  scrollTo({ top: scrollY + left, behavior: 'instant' })
}

const setHeight = (element: HTMLElement, pixels: number): void =>
  void (element.style.height = `${Math.max(0, pixels)}px`)
