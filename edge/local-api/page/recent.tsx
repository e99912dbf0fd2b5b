import { effect, signal } from '@preact/signals'
import { Download, Pause, Play } from 'lucide'
import type { JSX } from 'preact'
import { textAtHub } from '../../../protocol/model/alarms.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { call, pause } from '../../../protocol/ui/live.ts'
import { hardware, login } from './store.ts'

/** The fields of `GET /api/recent` that the page uses (`edge/recent.ts`). */
interface Recent {
  log: { at: number; level: string; message: string; fields: Record<string, unknown> }[]
  wire: { at: number; controller: string; direction: 'in' | 'out'; line: string }[]
}

const recent = signal<Recent>({ log: [], wire: [] })
const view = signal<'log' | 'wire'>('log')
const level = signal<'all' | 'warn' | 'error'>('all')
const sought = signal('')
const isOpen = signal(false)
const isPaused = signal(false)

/** Maximum number of lines that a telephone draws quickly; the filter finds the others. */
const SHOWN = 200
/** As many as the hub stores by default. */
const STORED = 2000
const AGAIN_MS = 2000

let isReading = false
effect(() => {
  if (isOpen.value && !isPaused.value && login.value === 'there' && !isReading) void readOn()
})

/** Reads the new lines at intervals, while a person sees them. A failure shows in the page's header. */
async function readOn(): Promise<void> {
  isReading = true
  while (isOpen.peek() && !isPaused.peek() && login.peek() === 'there') {
    const { log, wire } = recent.peek()
    const since = Math.min(...[log, wire].map((lines) => lines.at(-1)?.at ?? 0))
    const news = await call<Recent>('GET', `api/recent?since=${since}`).catch(() => null)
    if (news) recent.value = { log: joined(log, news.log, since), wire: joined(wire, news.wire, since) }
    await pause(AGAIN_MS)
  }
  isReading = false
}

/** The hub sends the lines of the last millisecond again. */
const joined = <T extends { at: number }>(old: readonly T[], news: readonly T[], since: number): T[] =>
  [...old.filter(({ at }) => at < since), ...news].slice(-STORED)

const time = (at: number): string =>
  new Date(at).toLocaleTimeString([], { hour12: false }) + `.${String(at % 1000).padStart(3, '0')}`

const colours: Readonly<Record<string, string>> = { error: 'bad', warn: 'text-warning-content bg-warning/30' }
const levels = { all: [], warn: ['warn', 'error'], error: ['error'] } as const

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

interface Line {
  at: number
  /** The level of a record, or the controller of a serial line. */
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
  const wanted: readonly string[] = levels[level.value]
  return log
    .filter((record) => wanted.length === 0 || wanted.includes(record.level))
    .map((record) => {
      const { at, message, fields } = record
      const more = JSON.stringify(fields)
      const { code, subject, detail } = fields
      const isAlarm = message === 'alarm' && typeof code === 'string'
      return {
        at,
        mark: record.level,
        class: colours[record.level] ?? '',
        text: isAlarm ? textAtHub(code, textOf(subject), textOf(detail)).title : sentenceOf(message),
        raw: more === '{}' ? '' : `${message} ${more}`,
      }
    })
}

const sentenceOf = (message: string): string => `${(message[0] ?? '').toUpperCase()}${message.slice(1)}`

/** Saves the lines as a text file, for example for support. */
function download(lines: readonly Line[]): void {
  const text = lines.map(({ at, mark, text, raw }) =>
    [new Date(at).toISOString(), mark, raw || text].join(' '),
  )
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text.join('\n'), '\n'], { type: 'text/plain' }))
  link.download = `hub-${hardware.value?.hubId}-${view.value}.txt`
  link.click()
  URL.revokeObjectURL(link.href)
}

/** The recent log and serial lines of the service, as they come. */
export function RecentView(): JSX.Element {
  const found = linesOf(recent.value).filter(({ mark, text, raw }) =>
    `${mark} ${text} ${raw}`.toLowerCase().includes(sought.value.toLowerCase()),
  )
  return (
    <details
      class="collapse collapse-arrow border border-base-300"
      open={isOpen.value}
      onToggle={(event) => void (isOpen.value = event.currentTarget.open)}
    >
      <summary class="collapse-title font-medium py-3 min-h-0">Log and wire of the last minutes</summary>
      <div class="collapse-content grid gap-2 min-w-0">
        <Tools found={found} />
        <ol
          class="max-h-96 overflow-y-auto text-sm grid gap-1"
          tabindex={0}
          aria-label={view.value === 'log' ? 'Log, the newest first' : 'Wire, the newest first'}
          data-recent={view.value}
        >
          {found
            .slice(-SHOWN)
            .toReversed()
            .map(({ at, mark, class: colour, text, raw }, index) => (
              <li key={`${at} ${index}`} class="break-words border-b border-base-300">
                <span class={view.value === 'wire' ? 'font-mono text-xs break-all' : ''}>{text}</span>{' '}
                <span class="quiet text-xs whitespace-nowrap">
                  {time(at)} <b class={colour}>{mark}</b>
                </span>
                {raw !== '' && (
                  <details>
                    <summary class="quiet cursor-pointer w-fit pr-6 touch text-xs">Details</summary>
                    <span class="font-mono text-xs break-all">{raw}</span>
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

/** Filters, pause and download. */
function Tools({ found }: { found: readonly Line[] }): JSX.Element {
  return (
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
      {view.value === 'log' && (
        <select
          class="select select-sm w-auto"
          aria-label="Level"
          value={level.value}
          onChange={(event) => void (level.value = event.currentTarget.value as typeof level.value)}
        >
          <option value="all">All levels</option>
          <option value="warn">Warnings and errors</option>
          <option value="error">Errors</option>
        </select>
      )}
      <button
        class="btn btn-sm"
        aria-pressed={isPaused.value}
        onClick={() => void (isPaused.value = !isPaused.value)}
      >
        <Icon icon={isPaused.value ? Play : Pause} /> {isPaused.value ? 'Continue' : 'Pause'}
      </button>
      <button class="btn btn-sm" onClick={() => download(found)}>
        <Icon icon={Download} /> Download
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
  )
}
