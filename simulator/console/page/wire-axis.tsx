import type { JSX } from 'preact'
import type { WireEntry } from '../../wire-entry.ts'
import { FittedText } from '../../../protocol/ui/fitted-text.tsx'
import { type Frame, highsOf, labelRoom, runsIn, since } from './wire-reading.ts'

const LANE = 18
const LEFT = 150
const WIDTH = 1000

export interface AxisProps {
  entries: readonly WireEntry[]
  levels: Readonly<Record<string, number>>
  controllers: readonly string[]
  /** The shown duration in milliseconds; it ends with the newest entry. */
  spanMs: number
  selected: number | null
  onSelect: (n: number) => void
}

/** Motions, lines and pins on one time axis, as in a logic analyser. */
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
        <Motion
          key={`${run.device} ${run.from}`}
          run={run}
          x={x}
          y={yOf(run.device)}
          to={to}
          room={labelRoom(runs, run, x, WIDTH)}
        />
      ))}
      {frames.map((frame) => (
        <FrameMark
          key={frame.n}
          frame={frame}
          x={x(frame.at_ms)}
          y={yOf(frame.controller)}
          isSelected={frame.n === selected}
          onSelect={onSelect}
        />
      ))}
      {pins.map((pin) => (
        <Pin
          key={pin}
          y={yOf(pin)}
          highs={highsOf(entries, pin, from, to, levels[pin] ?? 0).map(([begin, end]) => [x(begin), x(end)])}
        />
      ))}
      <Seconds from={from} spanMs={spanMs} x={x} y={height - 4} />
    </svg>
  )
}

function Seconds(props: { from: number; spanMs: number; x: (at: number) => number; y: number }): JSX.Element {
  const { from, spanMs, x, y } = props
  return (
    <>
      {Array.from({ length: 7 }, (_, index) => {
        const at = from + (index * spanMs) / 6
        return (
          <text
            key={index}
            x={x(at)}
            y={y}
            font-size="10"
            text-anchor={index === 0 ? 'start' : index === 6 ? 'end' : 'middle'}
            class="fill-base-content"
          >
            {at < 0 ? '' : `${(at / 1000).toFixed(1)} s`}
          </text>
        )
      })}
    </>
  )
}

/** `to`: the shown end of a running motion. `room`: the width for the label. */
function Motion(props: {
  run: ReturnType<typeof runsIn>[number]
  x: (at: number) => number
  y: number
  to: number
  room: number
}): JSX.Element {
  const { run, x, y, to, room } = props
  return (
    <g>
      <rect
        x={x(run.from)}
        y={y + 2}
        width={Math.max(2, x(run.to ?? to) - x(run.from))}
        height={LANE - 4}
        rx="3"
        class={run.to === null ? 'fill-warning' : 'fill-success/60'}
      />
      <FittedText x={x(run.from) + 4} y={y + 13} size={10} width={Math.max(0, room)}>
        {run.action.replaceAll('_', ' ')}
      </FittedText>
    </g>
  )
}

function FrameMark(props: {
  frame: Frame
  x: number
  y: number
  isSelected: boolean
  onSelect: (n: number) => void
}): JSX.Element {
  const { frame, x, y, isSelected, onSelect } = props
  const { n, direction, error, arrived, type } = frame
  const isResult = type === 'CMD' || type === 'RES'
  const colour =
    error !== undefined || arrived
      ? 'fill-error'
      : isSelected
        ? 'fill-primary'
        : isResult
          ? 'fill-secondary'
          : 'fill-info'
  return (
    <rect
      x={x - 1}
      y={y + (direction === 'to_controller' ? 1 : LANE / 2)}
      width={isSelected ? 5 : 2.5}
      height={LANE / 2 - 1}
      class={`cursor-pointer ${colour}`}
      onClick={() => onSelect(n)}
    />
  )
}

/** `highs`: the intervals in which the pin is high. */
function Pin({ y, highs }: { y: number; highs: readonly (readonly [number, number])[] }): JSX.Element {
  const base = y + LANE - 3
  return (
    <>
      <line x1={LEFT} x2={WIDTH} y1={base} y2={base} class="stroke-base-content/40" />
      {highs.map(([begin, end]) => (
        <rect
          key={begin}
          x={begin}
          y={y + 3}
          width={Math.max(1.5, end - begin)}
          height={LANE - 6}
          class="fill-accent/70"
        />
      ))}
    </>
  )
}
