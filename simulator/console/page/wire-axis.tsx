import type { JSX } from 'preact'
import type { WireEntry } from '../../wire-entry.ts'
import { FittedText } from '../../../protocol/ui/fitted-text.tsx'
import { type Frame, highsOf, labelRoom, runsIn, since } from './wire-reading.ts'

const LANE = 18
const LEFT = 150
const WIDTH = 1000

export interface AxisProps {
  entries: readonly WireEntry[]
  /** The levels as they are now. */
  levels: Readonly<Record<string, number>>
  controllers: readonly string[]
  /** How much is shown, in milliseconds; it ends with the newest entry. */
  spanMs: number
  selected: number | null
  onSelect: (n: number) => void
}

/** Motions, lines and pins over one time: what a logic analyser shows. */
export function WireAxis({
  entries,
  levels,
  controllers,
  spanMs,
  selected,
  onSelect,
}: AxisProps): JSX.Element {
  const to = entries.at(-1)?.at_ms ?? 0
  const from = to - spanMs
  const x = (at: number): number => LEFT + ((Math.max(at, from) - from) / spanMs) * (WIDTH - LEFT)
  const runs = runsIn(entries).filter((run) => (run.to ?? to) >= from)
  const shown = since(entries, from)
  const devices = [...new Set(runs.map(({ device }) => device))].sort()
  const pins = Object.keys(levels).filter(
    (name) => levels[name] === 1 || shown.some((one) => one.kind === 'edge' && one.gpio === name),
  )
  const frames = shown.filter((one): one is Frame => one.kind === 'frame')
  const lanes = [...devices, ...controllers, ...pins]
  const yOf = (lane: string): number => lanes.indexOf(lane) * LANE
  const height = lanes.length * LANE + 18
  return (
    <svg
      viewBox={`0 0 ${WIDTH} ${height}`}
      class="w-full min-w-[40rem] h-auto font-sans"
      role="img"
      aria-label="Time axis of the wire"
    >
      {lanes.map((lane, index) => (
        <g key={lane}>
          {index % 2 === 0 && (
            <rect x="0" y={index * LANE} width={WIDTH} height={LANE} class="fill-base-200" />
          )}
          <FittedText x={4} y={index * LANE + 13} size={11} width={LEFT - 8}>
            {lane}
          </FittedText>
        </g>
      ))}
      {runs.map((run) => (
        <g key={`${run.device} ${run.from}`}>
          <rect
            x={x(run.from)}
            y={yOf(run.device) + 2}
            width={Math.max(2, x(run.to ?? to) - x(run.from))}
            height={LANE - 4}
            rx="3"
            class={run.to === null ? 'fill-warning' : 'fill-success/60'}
          />
          <FittedText
            x={x(run.from) + 4}
            y={yOf(run.device) + 13}
            size={10}
            width={Math.max(0, labelRoom(runs, run, x, WIDTH))}
          >
            {run.action.replaceAll('_', ' ')}
          </FittedText>
        </g>
      ))}
      {frames.map(({ n, controller, direction, at_ms: at, error, arrived, type }) => (
        <rect
          key={n}
          x={x(at) - 1}
          y={yOf(controller) + (direction === 'to_controller' ? 1 : LANE / 2)}
          width={n === selected ? 5 : 2.5}
          height={LANE / 2 - 1}
          class={`cursor-pointer ${error !== undefined || arrived ? 'fill-error' : n === selected ? 'fill-primary' : type === 'CMD' || type === 'RES' ? 'fill-secondary' : 'fill-info'}`}
          onClick={() => onSelect(n)}
        />
      ))}
      {pins.flatMap((pin) => [
        <line
          key={pin}
          x1={LEFT}
          x2={WIDTH}
          y1={yOf(pin) + LANE - 3}
          y2={yOf(pin) + LANE - 3}
          class="stroke-base-content/40"
        />,
        ...highsOf(entries, pin, from, to, levels[pin] ?? 0).map(([begin, end]) => (
          <rect
            key={`${pin} ${begin}`}
            x={x(begin)}
            y={yOf(pin) + 3}
            width={Math.max(1.5, x(end) - x(begin))}
            height={LANE - 6}
            class="fill-accent/70"
          />
        )),
      ])}
      {Array.from({ length: 7 }, (_, index) => {
        const at = from + (index * spanMs) / 6
        return (
          <text
            key={index}
            x={x(at)}
            y={height - 4}
            font-size="10"
            text-anchor={index === 0 ? 'start' : index === 6 ? 'end' : 'middle'}
            class="fill-base-content"
          >
            {at < 0 ? '' : `${(at / 1000).toFixed(1)} s`}
          </text>
        )
      })}
    </svg>
  )
}
