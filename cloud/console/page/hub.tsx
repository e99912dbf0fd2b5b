import { signal } from '@preact/signals'
import type { JSX } from 'preact'
import { PictureLegend } from '../../../protocol/ui/picture-cabinet.tsx'
import { nameOf } from '../../../protocol/ui/picture-model.ts'
import { focusDevice, Picture } from '../../../protocol/ui/picture.tsx'
import { pictureColumns } from '../../../protocol/ui/theme.tsx'
import { useData } from './data.ts'
import { DevicePanel, HubControls } from './hub-controls.tsx'
import { type HubView, pictureOf, readHub } from './hub-view.ts'
import { ago } from './format.ts'
import { Card, Heading, Link, Loaded, Nothing } from './parts.tsx'
import { Problem, stateOf } from './today.tsx'
import { can, connect, ask } from './session.ts'
import { RefreshCw } from 'lucide'
import { useState } from 'preact/hooks'
import { unwrap } from '../../../protocol/client/client.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { logLines, LogView, type LeastLevel, type LogRecord } from '../../../protocol/ui/log-lines.tsx'
import { DAY_MS } from '../../../protocol/model/times.ts'
import { epochMs } from '../../../protocol/ui/page-clock.ts'
import { Plot, plotColors } from './plot.tsx'

const selected = signal<string | null>(null)

/** A second touch closes a device. */
function select(id: string): void {
  selected.value = selected.value === id ? null : id
  if (selected.value === null) return focusDevice(id)
  requestAnimationFrame(() => {
    const panel = document.getElementById('device')
    panel?.querySelector<HTMLElement>('h2')?.focus({ preventScroll: true })
    if (pictureColumns() === 2) panel?.scrollIntoView({ block: 'start' })
  })
}

/** A hub: its live picture, its devices with their controls, its problems and temperatures. */
export function HubPage({ id }: { id: number }): JSX.Element {
  const found = useData(() => readHub(id), [id])
  return (
    <Loaded of={found} missing="There is no such hub">
      {(hub) => (
        <>
          <Heading text={hub.info.name}>
            {can('inventory:read', id) && (
              <Link to={`/planogram/${id}`} class="btn btn-sm">
                Planogram and prices
              </Link>
            )}
          </Heading>
          <Facts hub={hub} />
          <div class="grid gap-3 xl:grid-cols-[minmax(0,1fr)_24rem] xl:grid-rows-[auto_1fr] items-start mt-3">
            <Card title="The hub now" name="picture">
              <Picture
                picture={pictureOf(hub)}
                columns={pictureColumns()}
                selected={selected.value}
                onSelect={select}
              />
              <PictureLegend />
            </Card>
            <div class="grid gap-3 min-w-0 xl:row-span-2">
              <div id="device" class="scroll-mt-16">
                <Card>
                  {selected.value === null ? (
                    <HubControls hub={hub} />
                  ) : (
                    <>
                      <div class="flex items-center gap-2 mb-2">
                        <h2 class="font-semibold grow" tabindex={-1}>
                          {nameOf(selected.value)}
                        </h2>
                        <button class="btn btn-sm btn-ghost" onClick={() => select(selected.value!)}>
                          Close
                        </button>
                      </div>
                      <DevicePanel hub={hub} device={selected.value} />
                    </>
                  )}
                </Card>
              </div>
              <Card title="Problems" name="problems">
                {hub.alarms.length === 0 && <Nothing>Nothing is wrong.</Nothing>}
                <ul class="grid gap-2">
                  {hub.alarms.map((alarm) => (
                    <Problem key={alarm.id} alarm={alarm} />
                  ))}
                </ul>
              </Card>
            </div>
            <div class="grid gap-3 min-w-0">
              <Temperatures hubId={id} timezone={hub.info.timezone} />
              <HubLog hubId={id} timezone={hub.info.timezone} />
            </div>
          </div>
        </>
      )}
    </Loaded>
  )
}

function Facts({ hub: { info, fleet } }: { hub: HubView }): JSX.Element {
  const place = [info.street_address_1, info.city, info.state].filter((text) => text !== '').join(', ')
  const heard = fleet.last_heartbeat === null ? 'never connected' : `last report ${ago(fleet.last_heartbeat)}`
  const facts = [place, info.timezone, heard, fleet.version === null ? '' : `software ${fleet.version}`]
  return (
    <p data-hub-state={fleet.hub_status}>
      The hub <b>{stateOf(fleet)}</b>.{' '}
      <span class="quiet">{facts.filter((text) => text !== '').join(' · ')}</span>
    </p>
  )
}

/** The service waits for the hub; a second try would ask the hub again. */
const client = connect({ retry: { tries: 1 }, timeoutMs: 60_000 })

const ranges = [
  [10, '10 minutes'],
  [60, 'hour'],
  [1440, 'day'],
] as const

const timeOf = (at: number, timeZone: string): string =>
  new Date(at).toLocaleString('en', { dateStyle: 'short', timeStyle: 'medium', hourCycle: 'h23', timeZone })

/** The log of a hub. It is read when a person asks, because each reading goes to the hub and into the audit. */
function HubLog({ hubId, timezone }: { hubId: number; timezone: string }): JSX.Element {
  const [minutes, setMinutes] = useState(60)
  const [least, setLeast] = useState<LeastLevel>('all')
  const [records, setRecords] = useState<readonly LogRecord[] | string>([])
  const [phase, setPhase] = useState<'unread' | 'reading' | 'read'>('unread')
  async function read(): Promise<void> {
    setPhase('reading')
    try {
      const query = { hub_id: hubId, minutes }
      const { data } = unwrap(await client.call('GET /owners/hubs/logs', { query }))
      setRecords(data.map(({ at, ...record }) => ({ at: Date.parse(at), ...record })))
    } catch (error) {
      setRecords(error instanceof Error ? error.message : String(error))
    }
    setPhase('read')
  }
  return (
    <Card title="Log" name="log">
      <div class="flex flex-wrap gap-2 mb-2">
        <select
          class="select select-sm w-auto"
          aria-label="Range"
          value={minutes}
          onChange={({ currentTarget }) => setMinutes(Number(currentTarget.value))}
        >
          {ranges.map(([count, name]) => (
            <option key={count} value={count}>
              The last {name}
            </option>
          ))}
        </select>
        <button class="btn btn-sm" disabled={phase === 'reading'} onClick={() => void read()}>
          <Icon icon={RefreshCw} /> {phase === 'reading' ? 'Reading …' : 'Read the log'}
        </button>
      </div>
      {typeof records === 'string' && <p role="alert">{records}</p>}
      {phase === 'read' && typeof records !== 'string' && (
        <LogView
          lines={logLines(records, least)}
          name="Log"
          time={(at) => timeOf(at, timezone)}
          file={`hub-${hubId}-log.txt`}
          level={{ value: least, onPick: setLeast }}
        />
      )}
      {phase === 'unread' && (
        <p class="text-sm quiet">The hub sends its newest records. The audit shows who has read them.</p>
      )}
    </Card>
  )
}

const spans = [
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
function Temperatures({ hubId, timezone }: { hubId: number; timezone: string }): JSX.Element {
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
        {spans.map((range) => (
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
