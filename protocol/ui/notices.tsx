import { signal } from '@preact/signals'
import { CircleAlert, CircleCheck, X } from 'lucide'
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Icon } from './icon.tsx'

/** What a person may do about a notice, on a button in it. */
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

/** Tells people what came of what they did. The newest two stay until others come; what went well goes by itself. */
export function say(text: string, isBad = false, action?: NoticeAction): void {
  notices.value = [...notices.value.slice(-1), { id: ++count, text, isBad, action }]
}

function putAway(id: number): void {
  notices.value = notices.value.filter((one) => one.id !== id)
}

/** Does something and tells what came of it. */
export async function attempt(what: string, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
    say(`${what}: done.`)
  } catch (error) {
    say(`${what}: ${error instanceof Error ? error.message : String(error)}`, true)
  }
}

/**
 * Notices lie over the bottom of the page and let fingers through, so that nothing moves when one comes. The page gets as
 * much room below as they cover, and what has the focus is scrolled out from under them.
 */
export function Notices(): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const { style } = document.documentElement
    const uncover = (): void => {
      const height = box.current?.offsetHeight ?? 0
      style.setProperty('--notices', `${notices.value.length === 0 ? 0 : height}px`)
      if (notices.value.length === 0) return
      const focused = document.activeElement
      if (!focused || focused === document.body || box.current?.contains(focused)) return
      const hidden = focused.getBoundingClientRect().bottom - (innerHeight - height)
      if (hidden > 0 && hidden < innerHeight) scrollBy({ top: hidden + 8, behavior: 'instant' })
    }
    uncover()
  }, [notices.value])
  return (
    <div
      ref={box}
      class="print:hidden fixed bottom-0 right-0 z-20 p-3 flex flex-col gap-2 w-full max-w-md pointer-events-none empty:hidden"
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
            aria-label="Put this away"
            onClick={() => putAway(id)}
          >
            <Icon icon={X} />
          </button>
        </div>
      ))}
    </div>
  )
}
