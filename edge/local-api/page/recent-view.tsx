import { signal } from '@preact/signals'
import { RefreshCw } from 'lucide'
import type { JSX } from 'preact'
import { textAtHub } from '../../../protocol/model/alarms.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { call } from '../../../protocol/ui/live.ts'
import { say } from '../../../protocol/ui/notices.tsx'
import { causeOf } from './words.ts'

/** The fields of `GET /api/recent` that the page uses (`edge/recent.ts`). */
interface Recent {
  log: { at: number; level: string; message: string; fields: Record<string, unknown> }[]
  wire: { at: number; controller: string; direction: 'in' | 'out'; line: string }[]
}

const recent = signal<Recent | null>(null)
const view = signal<'log' | 'wire'>('log')
const sought = signal('')

/** Maximum number of lines that a telephone draws quickly; the filter finds the others. */
const SHOWN = 200

async function look(): Promise<void> {
  try {
    recent.value = await call<Recent>('GET', 'api/recent')
  } catch (error) {
    say(causeOf(error), true)
  }
}

const time = (at: number): string =>
  new Date(at).toLocaleTimeString([], { hour12: false }) + `.${String(at % 1000).padStart(3, '0')}`

const colours: Readonly<Record<string, string>> = { error: 'bad', warn: 'text-warning-content bg-warning/30' }

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

interface Line {
  at: number
  mark: string
  class: string
  /** The main text for people. */
  text: string
  /** The line as in the log; empty if `text` contains all of it. */
  raw: string
}

function linesOf({ log, wire }: Recent): Line[] {
  if (view.value === 'wire')
    return wire.map(({ at, controller, direction, line }) => ({
      at,
      mark: direction === 'in' ? `${controller} →` : `→ ${controller}`,
      class: '',
      text: line,
      raw: '',
    }))
  return log.map(({ at, level, message, fields }) => {
    const more = JSON.stringify(fields)
    const { code, subject, detail } = fields
    const isAlarm = message === 'alarm' && typeof code === 'string'
    return {
      at,
      mark: level,
      class: colours[level] ?? '',
      text: isAlarm ? textAtHub(code, textOf(subject), textOf(detail)).title : message,
      raw: more === '{}' ? '' : `${message} ${more}`,
    }
  })
}

/** The recent log and serial lines of the service, for example to send to support. */
export function RecentView(): JSX.Element {
  const lines = recent.value === null ? [] : linesOf(recent.value)
  const found = lines.filter(({ mark, text, raw }) =>
    `${mark} ${text} ${raw}`.toLowerCase().includes(sought.value.toLowerCase()),
  )
  return (
    <details
      class="collapse collapse-arrow border border-base-300"
      onToggle={(event) => void (event.currentTarget.open && look())}
    >
      <summary class="collapse-title font-medium py-3 min-h-0">Log and wire of the last minutes</summary>
      <div class="collapse-content grid gap-2 min-w-0">
        <div class="flex flex-wrap gap-2">
          {(['log', 'wire'] as const).map((name) => (
            <button
              key={name}
              class={`btn btn-sm ${view.value === name ? 'btn-primary' : ''}`}
              aria-pressed={view.value === name}
              onClick={() => void (view.value = name)}
            >
              {name === 'log' ? 'Log' : 'Wire'}
            </button>
          ))}
          <button class="btn btn-sm" onClick={() => void look()}>
            <Icon icon={RefreshCw} /> Look again
          </button>
          <input
            class="input input-sm grow"
            type="search"
            aria-label="Only lines with"
            placeholder="Only lines with …"
            value={sought.value}
            onInput={(event) => void (sought.value = event.currentTarget.value)}
          />
        </div>
        <ol
          class="max-h-96 overflow-y-auto font-mono text-xs grid gap-0.5"
          tabindex={0}
          aria-label={view.value === 'log' ? 'Log, the newest first' : 'Wire, the newest first'}
          data-recent={view.value}
        >
          {found
            .slice(-SHOWN)
            .toReversed()
            .map(({ at, mark, class: colour, text, raw }, index) => (
              <li key={`${at} ${index}`} class="break-all">
                <span class="quiet">{time(at)}</span> <b class={colour}>{mark}</b> {text}
                {raw !== '' && (
                  <details>
                    <summary class="quiet cursor-pointer w-fit pr-6 touch">Details</summary>
                    {raw}
                  </details>
                )}
              </li>
            ))}
          {found.length === 0 && <li class="quiet">Nothing.</li>}
        </ol>
        {found.length > SHOWN && (
          <p class="quiet text-sm">
            The newest {SHOWN} of {found.length}.
          </p>
        )}
      </div>
    </details>
  )
}
