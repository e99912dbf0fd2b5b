const isShown = (element: Element): boolean => element.getClientRects().length > 0

/** The heading of the nearest part that remains, from the innermost one outwards. */
function headingNear(parts: readonly Element[]): HTMLElement | undefined {
  for (const part of parts) {
    if (!part.isConnected || !isShown(part)) continue
    const heading = [...part.querySelectorAll<HTMLElement>('h1, h2')].find(isShown)
    if (heading) return heading
  }
  return undefined
}

/**
 * Keeps the place of a person with a keyboard or a screen reader within `root`. If the focused control disappears, the
 * heading of its part gets the focus. A control that loses the focus while it is disabled gets it back.
 */
export function keepFocus(root: HTMLElement): void {
  /** The control that has or had the focus, and the parts around it. Empty if the person pointed at something else. */
  let held: Element[] = []
  const hold = (event: Event): void => {
    const path = event.composedPath().filter((one): one is Element => one instanceof Element)
    const control = path.findIndex((one) => one.matches('a, button, input, select, textarea, [tabindex]'))
    const isWithin = control >= 0 && path.includes(root)
    held = isWithin ? path.slice(control, path.indexOf(root) + 1) : []
  }
  // A click at a place without a control takes the focus away on purpose.
  document.addEventListener('pointerdown', hold, true)
  document.addEventListener('focusin', hold, true)
  const restore = (): void => {
    const [control, ...parts] = held
    const active = document.activeElement
    if (!control || (active !== document.body && active !== control)) return
    if (control.isConnected && isShown(control)) {
      if (active !== control && !control.matches(':disabled'))
        (control as HTMLElement).focus({ preventScroll: true })
      return
    }
    const heading = headingNear(parts)
    if (!heading) return
    heading.tabIndex = -1
    heading.focus({ preventScroll: true })
  }
  const seen = new MutationObserver(() => void requestAnimationFrame(restore))
  seen.observe(root, {
    subtree: true,
    childList: true,
    attributes: true,
    attributeFilter: ['class', 'disabled'],
  })
}
