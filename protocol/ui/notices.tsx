import { signal } from '@preact/signals'
import { CircleAlert, CircleCheck, X } from 'lucide'
import type { JSX } from 'preact'
import { Icon } from './icon.tsx'

interface Notice {
  id: number
  text: string
  isBad: boolean
}

const notices = signal<readonly Notice[]>([])
let count = 0

/** Tells people what came of what they did. The newest two stay until others come; what went well goes by itself. */
export function say(text: string, isBad = false): void {
  notices.value = [...notices.value.slice(-1), { id: ++count, text, isBad }]
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

/** They lie over the page and let fingers through: nothing below moves when one comes, or cannot be pressed. */
export function Notices(): JSX.Element {
  return (
    <div
      class="print:hidden fixed bottom-0 right-0 z-20 p-3 flex flex-col gap-2 w-full max-w-md pointer-events-none"
      role="status"
    >
      {notices.value.map(({ id, text, isBad }) => (
        <div
          key={id}
          class={`alert py-2 shadow-lg flex text-left items-start ${isBad ? 'alert-error' : 'alert-success passing'}`}
          data-notice={isBad ? 'bad' : 'good'}
          onAnimationEnd={() => putAway(id)}
        >
          <Icon icon={isBad ? CircleAlert : CircleCheck} class="mt-1" />
          <span class="grow break-words min-w-0">{text}</span>
          <button
            class="btn btn-ghost btn-xs btn-square pointer-events-auto"
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
