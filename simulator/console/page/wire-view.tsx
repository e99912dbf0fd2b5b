import { batch, effect, signal } from '@preact/signals'
import { ArrowLeft, ArrowRight, Download, Pause, Play, Send } from 'lucide'
import type { JSX } from 'preact'
import { textsOf } from '../../../protocol/ui/form.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { attempt } from '../../../protocol/ui/notices.tsx'
import type { WireEntry } from '../../wire-entry.ts'
import { ask, hubId, shownStart, state, wire } from './store.ts'
import { WireAxis } from './wire-axis.tsx'
import { laneOf, newest, textOf, typeOf, waitsOf, type WireFilter } from './wire-reading.ts'

const SHOWN = 100
const spans = [2, 10, 30, 120] as const

const filter = signal<WireFilter>({ text: '', lane: '', withChatter: false })
const spanMs = signal(30_000)
const chosen = signal<number | null>(null)
/** The entries at the time of `Pause`; null while the list continues. */
const held = signal<readonly WireEntry[] | null>(null)
const set = (change: Partial<WireFilter>): void => void (filter.value = { ...filter.peek(), ...change })

/** A chosen line and held entries belong to one start of one hub. */
effect(() => {
  if (shownStart.value === 0) return
  batch(() => {
    held.value = null
    chosen.value = null
    set({ lane: '' })
  })
})

function Bar({ lanes }: { lanes: readonly string[] }): JSX.Element {
  return (
    <div class="flex flex-wrap items-end gap-2 mb-3">
      <button
        class="btn btn-sm"
        aria-pressed={held.value !== null}
        onClick={() => void (held.value = held.value === null ? wire.value : null)}
      >
        <Icon icon={held.value === null ? Pause : Play} /> {held.value === null ? 'Pause' : 'Continue'}
      </button>
      <label class="grid gap-1 text-sm">
        Search
        <input
          type="search"
          class="input input-sm w-40"
          value={filter.value.text}
          onInput={(event) => set({ text: event.currentTarget.value })}
        />
      </label>
      <label class="grid gap-1 text-sm">
        Line or device
        <select
          class="select select-sm w-40"
          value={filter.value.lane}
          onChange={(event) => set({ lane: event.currentTarget.value })}
        >
          <option value="">all</option>
          {lanes.map((lane) => (
            <option key={lane} value={lane}>
              {lane}
            </option>
          ))}
        </select>
      </label>
      <label class="grid gap-1 text-sm">
        Time shown
        <select
          class="select select-sm w-24"
          value={spanMs.value / 1000}
          onChange={(event) => void (spanMs.value = Number(event.currentTarget.value) * 1000)}
        >
          {spans.map((seconds) => (
            <option key={seconds} value={seconds}>{`${seconds} s`}</option>
          ))}
        </select>
      </label>
      <label class="label text-sm text-base-content">
        <input
          type="checkbox"
          class="checkbox checkbox-sm"
          checked={filter.value.withChatter}
          onChange={(event) => set({ withChatter: event.currentTarget.checked })}
        />
        PING, PONG, ACK
      </label>
      <span class="grow" />
      {(['jsonl', 'vcd'] as const).map((kind) => (
        <a key={kind} class="btn btn-sm" href={`api/hubs/${hubId.value}/wire.${kind}`} download>
          <Icon icon={Download} /> {kind === 'vcd' ? 'VCD' : 'JSON lines'}
        </a>
      ))}
    </div>
  )
}

/** The line that the tab key reaches; arrow keys reach the others. */
const current = signal<number | null>(null)
function moveInList(event: KeyboardEvent): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  if (step === undefined || !(event.currentTarget instanceof HTMLElement)) return
  const buttons = [...event.currentTarget.querySelectorAll<HTMLElement>('button[data-line]')]
  const next = buttons[buttons.findIndex((one) => one === document.activeElement) + step]
  if (!next) return
  event.preventDefault()
  next.focus()
}

function Line({ entry, isTabStop }: { entry: WireEntry; isTabStop: boolean }): JSX.Element {
  const isBad = entry.kind === 'frame' && (entry.error !== undefined || entry.arrived !== undefined)
  return (
    <li class="border-b border-base-300">
      <button
        class={`w-full text-left flex flex-wrap gap-x-3 py-1 px-1 text-sm hover:bg-base-200 ${chosen.value === entry.n ? 'bg-base-200' : ''}`}
        aria-expanded={chosen.value === entry.n}
        data-line={entry.n}
        tabIndex={isTabStop ? 0 : -1}
        onFocus={() => void (current.value = entry.n)}
        onClick={() => void (chosen.value = chosen.value === entry.n ? null : entry.n)}
      >
        <span class="quiet tabular-nums w-20 text-right">{(entry.at_ms / 1000).toFixed(3)}</span>
        <span class="w-32 truncate">{laneOf(entry)}</span>
        <span class="w-24 flex items-center gap-1 font-medium">
          {entry.kind === 'frame' && (
            <>
              <Icon icon={entry.direction === 'to_hub' ? ArrowLeft : ArrowRight} />
              <span class="sr-only">{entry.direction === 'to_hub' ? 'to the hub' : 'to the controller'}</span>
            </>
          )}
          {typeOf(entry)}
        </span>
        <span class={`font-mono text-xs break-all min-w-0 flex-1 basis-64 self-center ${isBad ? 'bad' : ''}`}>
          {textOf(entry)}
        </span>
      </button>
      {chosen.value === entry.n && <Details entry={entry} />}
    </li>
  )
}

function Details({ entry }: { entry: WireEntry }): JSX.Element {
  const later = (held.value ?? wire.value).filter(({ n }) => n > entry.n)
  const facts: [string, string][] =
    entry.kind === 'frame'
      ? [
          ['line', entry.line],
          ['sequence', entry.seq === undefined ? 'not readable' : `${entry.seq}`],
          [
            'CRC',
            entry.error === 'crc'
              ? 'wrong'
              : entry.type === undefined && entry.seq === undefined
                ? 'not readable'
                : `${entry.line.slice(-4)}, right`,
          ],
          ...Object.entries(entry.fields ?? {}).map(([key, value]): [string, string] => [key, String(value)]),
        ]
      : Object.entries(entry)
          .filter(([key]) => key !== 'n')
          .map(([key, value]): [string, string] => [
            key,
            typeof value === 'object' ? JSON.stringify(value) : String(value),
          ])
  return (
    <div class="bg-base-200 p-3 text-sm" data-details>
      <dl class="grid grid-cols-[auto_1fr] gap-x-4">
        {facts.map(([name, value]) => (
          <>
            <dt class="quiet">{name}</dt>
            <dd class="font-mono break-all">{value}</dd>
          </>
        ))}
      </dl>
      {entry.kind === 'frame' && waitsOf(entry, later).map((sentence) => <p key={sentence}>{sentence}</p>)}
    </div>
  )
}

function Inject({ controllers }: { controllers: readonly string[] }): JSX.Element {
  function send(event: SubmitEvent): void {
    const { controller, direction, line } = textsOf(event)
    void attempt('Line put on the wire', () => ask('POST', '/wire', { controller, direction, line }))
  }
  return (
    <form class="flex flex-wrap gap-2 items-end mt-3" onSubmit={send}>
      <label class="grid gap-1 text-sm">
        Put a line on
        <select name="controller" class="select select-sm w-40">
          {controllers.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      <label class="grid gap-1 text-sm">
        towards
        <select name="direction" class="select select-sm w-36">
          <option value="to_controller">the controller</option>
          <option value="to_hub">the hub</option>
        </select>
      </label>
      <label class="grid gap-1 text-sm grow">
        Text (without * and a CRC it gets the right one)
        <input
          name="line"
          class="input input-sm w-full font-mono"
          placeholder="~0001 PING t=5"
          maxLength={1000}
          required
        />
      </label>
      <button class="btn btn-sm">
        <Icon icon={Send} /> Send
      </button>
    </form>
  )
}

/** The serial lines and GPIO pins of the hub: decoded, over time, and line by line. */
export function WireView(): JSX.Element {
  const entries = held.value ?? wire.value
  const controllers = state.value?.controllers.map(({ controller }) => controller) ?? []
  const lanes = [...new Set([...controllers, ...entries.map(laneOf)])]
  const shown = newest(entries, filter.value, SHOWN)
  const tabStop = shown.some(({ n }) => n === current.value) ? current.value : shown[0]?.n
  return (
    <div data-wire>
      <Bar lanes={lanes} />
      <div class="overflow-x-auto" tabIndex={0} role="region" aria-label="Time axis">
        <WireAxis
          entries={entries}
          levels={state.value?.gpio ?? {}}
          controllers={controllers}
          spanMs={spanMs.value}
          selected={chosen.value}
          onSelect={(n) => void (chosen.value = n)}
        />
      </div>
      <Inject controllers={controllers} />
      <p class="quiet text-sm mt-3">
        {shown.length === 0
          ? 'Nothing fits.'
          : `The newest ${shown.length} of ${entries.length} that are kept here.`}
      </p>
      <ol onKeyDown={moveInList}>
        {shown.map((entry) => (
          <Line key={entry.n} entry={entry} isTabStop={entry.n === tabStop} />
        ))}
      </ol>
    </div>
  )
}
