import { DAY_MS } from '../../../protocol/model/times.ts'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { epochMs } from '../../../protocol/ui/page-clock.ts'
import { useData } from './data.ts'
import { Plot, plotColors } from './plot.tsx'
import { Card, Loaded, Nothing } from './parts.tsx'
import { ask } from './session.ts'

const ranges = [
  { name: 'Day', days: 1 },
  { name: 'Week', days: 7 },
  { name: 'Month', days: 31 },
] as const

/** The hour of a day, or the day of a longer range, in the time of the hub. */
const labelOf = (at: number, days: number, timeZone: string): string =>
  new Date(at * 1000).toLocaleString('en', {
    ...(days === 1 ? { hour: 'numeric', minute: '2-digit' } : { month: 'short', day: 'numeric' }),
    timeZone,
  })

/** The temperatures of a hub's fridges over a day, a week or a month. */
export function Temperatures({ hubId, timezone }: { hubId: number; timezone: string }): JSX.Element {
  const [days, setDays] = useState(1)
  const read = useData(
    () =>
      ask('GET /owners/hubs/temperatures', {
        query: { hub_id: hubId, from: new Date(epochMs() - days * DAY_MS).toISOString() },
      }),
    [hubId, days],
  )
  return (
    <Card title="Temperatures" name="temperatures">
      <div class="flex gap-1 mb-2" role="group" aria-label="Range">
        {ranges.map((range) => (
          <button
            key={range.name}
            class={`btn btn-sm ${range.days === days ? 'btn-primary' : ''}`}
            aria-pressed={range.days === days}
            onClick={() => setDays(range.days)}
          >
            {range.name}
          </button>
        ))}
      </div>
      <Loaded of={read}>
        {(spans) => {
          if (spans.length === 0) return <Nothing>No temperature was reported.</Nothing>
          const times = [...new Set(spans.map(({ at }) => Date.parse(at) / 1000))].toSorted((a, b) => a - b)
          const fridges = [...new Set(spans.map(({ fridge }) => fridge))]
          const byPlace = new Map(
            spans.map(({ fridge, at, mean }) => [`${fridge} ${Date.parse(at) / 1000}`, mean]),
          )
          const latest = fridges.map((fridge) => {
            const last = spans.findLast((span) => span.fridge === fridge)!
            return `fridge ${fridge} ${last.mean.toFixed(1)} °C (${last.min.toFixed(1)} to ${last.max.toFixed(1)})`
          })
          return (
            <>
              <Plot
                label={`Temperatures of the last ${days === 1 ? 'day' : `${days} days`}`}
                kind="lines"
                x={times}
                series={fridges.map((fridge, index) => ({
                  name: `Fridge ${fridge}`,
                  color: plotColors[index % plotColors.length]!,
                  values: times.map((at) => byPlace.get(`${fridge} ${at}`) ?? null),
                }))}
                nameOf={(at) => labelOf(at, days, timezone)}
                valueOf={(celsius) => `${celsius.toFixed(1)} °C`}
              />
              <p class="text-sm quiet">Last five minutes: {latest.join(', ')}.</p>
            </>
          )
        }}
      </Loaded>
    </Card>
  )
}
