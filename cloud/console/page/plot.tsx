import type { JSX } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

interface Series {
  name: string
  /** Classes of its bars or line, and of its sign in the legend. */
  color: { fill: string; stroke: string; background: string }
  values: readonly (number | null)[]
}

interface PlotProps {
  /** A sentence for readers who do not see the plot. */
  label: string
  /** Positions, ascending. */
  x: readonly number[]
  series: readonly Series[]
  kind: 'bars' | 'lines'
  nameOf: (x: number) => string
  valueOf: (value: number) => string
}

export const plotColors: readonly Series['color'][] = [
  { fill: 'fill-info', stroke: 'stroke-info', background: 'bg-info' },
  { fill: 'fill-primary', stroke: 'stroke-primary', background: 'bg-primary' },
  { fill: 'fill-warning', stroke: 'stroke-warning', background: 'bg-warning' },
  { fill: 'fill-error', stroke: 'stroke-error', background: 'bg-error' },
  { fill: 'fill-success', stroke: 'stroke-success', background: 'bg-success' },
  { fill: 'fill-accent', stroke: 'stroke-accent', background: 'bg-accent' },
]

const HEIGHT = 230
const LEFT = 64
const BOTTOM = 22
const TOP = 8
/** Width of a text below the plot, in pixels. */
const TEXT = 72

/** About five round values from the least to the most: 0, 20, 40, … */
function ticksOf(least: number, most: number): number[] {
  const rough = Math.max(most - least, 1e-9) / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough)!
  const first = Math.floor(least / step)
  return Array.from({ length: Math.ceil(most / step) - first + 1 }, (_, index) => (first + index) * step)
}

/** A plot of bars or lines. Its page also has the numbers as a table or a sentence. */
export function Plot({ label, x, series, kind, nameOf, valueOf }: PlotProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const sized = new ResizeObserver(() => setWidth(place.current?.clientWidth ?? 0))
    sized.observe(place.current!)
    return () => sized.disconnect()
  }, [])
  const values = series.flatMap((one) => one.values.filter((value) => value !== null))
  const ticks = ticksOf(Math.min(0, ...values), Math.max(kind === 'bars' ? 1 : 0, ...values))
  const [least, most] = [ticks[0]!, ticks.at(-1)!]
  const yOf = (value: number): number =>
    TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - least) / (most - least))
  const inner = Math.max(0, width - LEFT - 8)
  const [first = 0, last = 0] = [x[0], x.at(-1)]
  const xOf = (at: number, index: number): number =>
    kind === 'bars'
      ? LEFT + (inner * (index + 0.5)) / x.length
      : LEFT + (inner * (at - first)) / Math.max(1, last - first)
  /** The text of a line's point begins there. */
  const hasRoom = (from: number): boolean => kind === 'bars' || from + TEXT <= width
  const every = Math.max(1, Math.ceil((x.length * TEXT) / Math.max(TEXT, inner)))
  return (
    <div ref={place} class="min-w-0">
      <svg width={width} height={HEIGHT} role="img" aria-label={label} class="block font-sans">
        {ticks.map((value) => (
          <g key={value}>
            <line x1={LEFT} x2={width} y1={yOf(value)} y2={yOf(value)} class="stroke-base-content/20" />
            <text x={LEFT - 6} y={yOf(value) + 4} text-anchor="end" font-size="11" class="fill-base-content">
              {valueOf(value)}
            </text>
          </g>
        ))}
        {x.map((at, index) =>
          index % every === 0 && hasRoom(xOf(at, index)) ? (
            <text
              key={at}
              x={xOf(at, index)}
              y={HEIGHT - 5}
              text-anchor={kind === 'bars' ? 'middle' : 'start'}
              font-size="11"
              class="fill-base-content"
            >
              {nameOf(at)}
            </text>
          ) : null,
        )}
        {series.map((one, number) =>
          kind === 'bars' ? (
            <Bars
              key={one.name}
              {...{ one, number, x, xOf, yOf, nameOf, valueOf }}
              room={inner / x.length / series.length}
            />
          ) : (
            <path
              key={one.name}
              d={lineOf(
                one.values,
                (value, index) => `${xOf(x[index]!, index).toFixed(1)} ${yOf(value).toFixed(1)}`,
              )}
              fill="none"
              stroke-width="2"
              stroke-linecap="round"
              class={one.color.stroke}
            />
          ),
        )}
      </svg>
      <ul class="flex flex-wrap gap-x-4 text-sm" aria-label="Colours">
        {series.map(({ name, color }) => (
          <li key={name} class="flex items-center gap-1">
            <span class={`inline-block size-3 rounded ${color.background}`} /> {name}
          </li>
        ))}
      </ul>
    </div>
  )
}

/** A path with a gap where there is no value. */
function lineOf(
  values: readonly (number | null)[],
  pointOf: (value: number, index: number) => string,
): string {
  let isDrawing = false
  return values
    .map((value, index) => {
      const step =
        value === null ? '' : isDrawing ? `L${pointOf(value, index)}` : `M${pointOf(value, index)}h0`
      isDrawing = value !== null
      return step
    })
    .join('')
}

interface BarsProps extends Pick<PlotProps, 'x' | 'nameOf' | 'valueOf'> {
  one: Series
  /** Its place among the series. */
  number: number
  /** Width of a bar with its gap. */
  room: number
  xOf: (at: number, index: number) => number
  yOf: (value: number) => number
}

function Bars({ one, number, room, x, xOf, yOf, nameOf, valueOf }: BarsProps): JSX.Element {
  const bar = Math.min(30, Math.max(1, room * 0.8))
  return (
    <g class={one.color.fill}>
      {x.map((at, index) => {
        const value = one.values[index] ?? 0
        const y = Math.min(yOf(value), yOf(0))
        return (
          <rect
            key={at}
            x={xOf(at, index) + (number - 1) * bar}
            y={y}
            width={bar}
            height={Math.abs(yOf(value) - yOf(0))}
          >
            <title>{`${nameOf(at)}: ${one.name} ${valueOf(value)}`}</title>
          </rect>
        )
      })}
    </g>
  )
}
