import { signal } from '@preact/signals'
import { CircleAlert, CircleCheck, X } from 'lucide'
import type { JSX } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Icon } from './icon.tsx'

/** A button in a notice. */
export interface NoticeAction {
  label: string
  run: () => void
}

interface Notice {
  id: number
  text: string
  isBad: boolean
  action: NoticeAction | undefined
}

const notices = signal<readonly Notice[]>([])
let count = 0

/**
 * Shows the result of an action. The newest two notices stay until others arrive; notices of success disappear
 * automatically.
 */
export function say(text: string, isBad = false, action?: NoticeAction): void {
  notices.value = [...notices.value.slice(-1), { id: ++count, text, isBad, action }]
}

function putAway(id: number): void {
  notices.value = notices.value.filter((one) => one.id !== id)
}

/** Removes the notices of failures that begin with `what`: a new try makes them untrue. */
export function clearFailures(what = ''): void {
  notices.value = notices.value.filter(({ isBad, text }) => !isBad || !text.startsWith(what))
}

/** Executes an action and shows its result. */
export async function attempt(what: string, work: () => Promise<unknown>): Promise<void> {
  clearFailures(`${what}: `)
  try {
    await work()
    say(`${what}: done.`)
  } catch (error) {
    say(`${what}: ${error instanceof Error ? error.message : String(error)}`, true)
  }
}

/** Where the pointer was last, in pixels from the top of the window. */
let pointerY = 0
addEventListener('pointermove', ({ clientY }) => (pointerY = clientY), { capture: true, passive: true })
addEventListener('pointerdown', ({ clientY }) => (pointerY = clientY), { capture: true, passive: true })

/** Whether the person uses the lower half of the window. The focus decides, or else the pointer. */
function isBelow(): boolean {
  const focused = document.activeElement
  if (!focused || focused === document.body) return pointerY > innerHeight / 2
  const { top, bottom } = focused.getBoundingClientRect()
  return (bottom < 0 || top > innerHeight ? pointerY : (top + bottom) / 2) > innerHeight / 2
}

/**
 * Notices lie over the page and let touches through, so that no content moves when one appears. They appear in the half
 * of the window that the person does not use. The page gets space at its end for the covered lines.
 */
export function Notices({ putAwayText = 'Put this away' }: { putAwayText?: string }): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  const [isOnTop, setOnTop] = useState(false)
  useLayoutEffect(() => {
    setOnTop(isBelow())
    const height = notices.value.length === 0 ? 0 : (box.current?.offsetHeight ?? 0)
    document.documentElement.style.setProperty('--notices', `${height}px`)
  }, [notices.value])
  return (
    <div
      ref={box}
      class={`print:hidden fixed right-0 z-20 p-3 flex flex-col gap-2 w-full max-w-md pointer-events-none ${isOnTop ? 'top-14' : 'bottom-0'}`}
      role="status"
    >
      {notices.value.map(({ id, text, isBad, action }) => (
        <div
          key={id}
          class={`alert py-2 shadow-lg flex text-left items-center ${isBad ? 'alert-error' : `alert-success ${action ? '' : 'passing'}`}`}
          data-notice={isBad ? 'bad' : 'good'}
          onAnimationEnd={() => putAway(id)}
        >
          <Icon icon={isBad ? CircleAlert : CircleCheck} />
          <span class="grow break-words min-w-0">{text}</span>
          {action && (
            <button
              class="btn btn-sm pointer-events-auto"
              onClick={() => {
                putAway(id)
                action.run()
              }}
            >
              {action.label}
            </button>
          )}
          <button
            class="btn btn-ghost btn-sm btn-square pointer-events-auto"
            aria-label={putAwayText}
            onClick={() => putAway(id)}
          >
            <Icon icon={X} />
          </button>
        </div>
      ))}
    </div>
  )
}
