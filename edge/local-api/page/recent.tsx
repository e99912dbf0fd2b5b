import { effect, signal } from '@preact/signals'
import { Pause, Play } from 'lucide'
import type { JSX } from 'preact'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { call, pause } from '../../../protocol/ui/live.ts'
import {
  logLines,
  LogView,
  type LeastLevel,
  type LogLine,
  type LogRecord,
} from '../../../protocol/ui/log-lines.tsx'
import { hardware, login } from './store.ts'

/** The fields of `GET /api/recent` that the page uses (`edge/recent.ts`). */
interface Recent {
  log: LogRecord[]
  wire: { at: number; controller: string; direction: 'in' | 'out'; line: string }[]
}

const recent = signal<Recent>({ log: [], wire: [] })
const view = signal<'log' | 'wire'>('log')
const level = signal<LeastLevel>('all')
const isOpen = signal(false)
const isPaused = signal(false)

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

function linesOf({ log, wire }: Recent): LogLine[] {
  if (view.value === 'log') return logLines(log, level.value)
  return wire.map(({ at, controller, direction, line }) => ({
    at,
    mark: direction === 'in' ? `${controller} →` : `→ ${controller}`,
    class: '',
    text: line,
    raw: '',
  }))
}

/** The recent log and serial lines of the service, as they come. */
export function RecentView(): JSX.Element {
  const isWire = view.value === 'wire'
  return (
    <details
      class="collapse collapse-arrow border border-base-300"
      open={isOpen.value}
      onToggle={(event) => void (isOpen.value = event.currentTarget.open)}
    >
      <summary class="collapse-title font-medium py-3 min-h-0">Log and wire of the last minutes</summary>
      <div class="collapse-content min-w-0">
        <LogView
          lines={linesOf(recent.value)}
          name={isWire ? 'Wire' : 'Log'}
          class={isWire ? 'font-mono text-xs break-all' : ''}
          file={`hub-${hardware.value?.hubId}-${view.value}.txt`}
          {...(!isWire && {
            level: { value: level.value, onPick: (picked) => void (level.value = picked) },
          })}
        >
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
          <button
            class="btn btn-sm"
            aria-pressed={isPaused.value}
            onClick={() => void (isPaused.value = !isPaused.value)}
          >
            <Icon icon={isPaused.value ? Play : Pause} /> {isPaused.value ? 'Continue' : 'Pause'}
          </button>
        </LogView>
      </div>
    </details>
  )
}
