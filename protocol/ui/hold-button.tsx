import type { JSX } from 'preact'
import { useState } from 'preact/hooks'

/** A keyboard repeats Enter while it is held: each repetition would press the button, or send the form, again. */
export function ignoreHeldEnter(event: KeyboardEvent): void {
  const isLine = event.target instanceof HTMLTextAreaElement
  if (event.repeat && event.key === 'Enter' && !isLine) event.preventDefault()
}

interface HoldButtonProps {
  /** Text of the button. */
  children: string
  /** Called once, after the person has held the button or confirmed. */
  onHeld: () => void
  class?: string
  label?: string | undefined
  isBusy?: boolean
}

const HINT = 'Hold for 1 second'
const ASKED = 'Press again to confirm'

/**
 * A button for an action that cannot be undone. With touch or mouse the person must hold it for a second. With the
 * keyboard, or from a program without a pointer, a second press confirms. Its size never changes.
 */
export function HoldButton({
  children,
  onHeld,
  class: more = '',
  label,
  isBusy = false,
}: HoldButtonProps): JSX.Element {
  const [phase, setPhase] = useState<'idle' | 'held' | 'hint' | 'asked'>('idle')
  const shown = phase === 'asked' ? ASKED : phase === 'hint' ? HINT : children
  const end = (): void => setPhase((now) => (now === 'held' ? 'hint' : now))
  function act(): void {
    setPhase('idle')
    if (!isBusy) onHeld()
  }
  return (
    <button
      type="button"
      class={`btn hold ${more}`}
      aria-busy={isBusy}
      aria-label={label === undefined || phase === 'asked' ? undefined : label}
      aria-description="Hold for one second. By keyboard, press twice."
      data-hold={phase}
      onPointerDown={(event) => {
        if (event.button === 0) setPhase('held')
      }}
      onPointerUp={end}
      onPointerLeave={end}
      onPointerCancel={end}
      onContextMenu={(event) => event.preventDefault()}
      onKeyDown={ignoreHeldEnter}
      onBlur={() => setPhase('idle')}
      onClick={({ detail }) => {
        // A pointer's click has a count.
        if (detail > 0) return
        if (phase === 'asked') act()
        else setPhase('asked')
      }}
    >
      {phase === 'held' && (
        // The animation lasts a second; its end triggers the action.
        <span class="hold-progress" aria-hidden="true" onAnimationEnd={act} />
      )}
      {[children, HINT, ASKED].map((text) => (
        <span key={text} class={text === shown ? 'hold-text' : 'hold-text invisible'}>
          {text}
        </span>
      ))}
    </button>
  )
}
