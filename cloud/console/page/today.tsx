import { counted } from '../../../protocol/model/counted.ts'
import type { JSX } from 'preact'
import type { Alarm } from '../../../protocol/contract/owner-alarms.ts'
import { placeText } from '../../../protocol/model/subject.ts'
import type { FleetHub, RestockRow } from '../../../protocol/contract/owner-reports.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { useData, keep } from './data.ts'
import { addDays, ago, money, shortDay, title, weekday, today } from './format.ts'
import { useActorName } from './names.ts'
import { act, Card, Figure, Heading, Link, Loaded, Nothing, severityLooks } from './parts.tsx'
import { all, ask, can } from './session.ts'
import { readHubFacts } from './hubs.ts'

interface Now {
  fleet: FleetHub[]
  alarms: Alarm[]
  /** Null without the right to read them. */
  sales: ReadonlyMap<number, HubSales> | null
  restock: RestockRow[] | null
}

async function readNow(): Promise<Now> {
  const [fleet, alarms, restock] = await Promise.all([
    all('GET /owners/fleet', { query: { limit: 100 } }),
    all('GET /owners/alarms', { query: { limit: 100 } }),
    can('inventory:read') ? all('GET /owners/restock', { query: { limit: 100 } }) : null,
  ])
  const readable = fleet.filter(({ hub_id }) => can('analytics:read', hub_id))
  return { fleet, alarms, restock, sales: readable.length === 0 ? null : await readHubSales(readable) }
}

/** Yesterday against the same weekday: `12 % more than on the Wednesday before ($80.10)`. */
function against({ yesterday: now, yesterdayBefore: before, day, currency }: HubSales): string {
  const other = weekday(addDays(day, -8))
  if (before === 0) return `nothing on the ${other} before`
  const change = Math.round(((now - before) / before) * 100)
  return `${Math.abs(change)} % ${change < 0 ? 'less' : 'more'} than on the ${other} before (${money(before, currency)})`
}

/** `All of last Wednesday: $80.10`. */
const lastWeek = ({ day, todayBefore, currency }: HubSales): string =>
  `All of last ${weekday(day)}: ${money(todayBefore, currency)}`

function Sales({ sales }: { sales: ReadonlyMap<number, HubSales> }): JSX.Element {
  const rows = [...sales.values()]
  // Hubs in other time zones may have another day for some hours.
  const sum = (key: Exclude<keyof HubSales, 'currency' | 'day'>): number =>
    rows.reduce((total, row) => total + row[key], 0)
  const all: HubSales = {
    ...rows[0]!,
    today: sum('today'),
    yesterday: sum('yesterday'),
    todayBefore: sum('todayBefore'),
    yesterdayBefore: sum('yesterdayBefore'),
    ordersYesterday: sum('ordersYesterday'),
  }
  return (
    <>
      <Figure name="yesterday" label="Yesterday" value={money(all.yesterday, all.currency)}>
        {counted(all.ordersYesterday, 'order')}, {against(all)}
      </Figure>
      <Figure name="today" label="Today so far" value={money(all.today, all.currency)}>
        {lastWeek(all)}
      </Figure>
    </>
  )
}

/** One look at all hubs: sales, problems with their remedies, and what to refill. */
export function TodayPage(): JSX.Element {
  const now = useData(readNow, ['today'])
  return (
    <>
      <Heading text="Today" />
      <Loaded of={now}>
        {({ fleet, alarms, sales, restock }) => (
          <div class="grid gap-3">
            <div class="grid gap-3 grid-cols-2 lg:grid-cols-4">
              {sales && <Sales sales={sales} />}
              <Figure name="problems" label="Open problems" value={String(alarms.length)}>
                {counted(alarms.filter(({ severity }) => severity === 'critical').length, 'critical problem')}
              </Figure>
              {restock && (
                <Figure
                  name="refill"
                  label="To refill"
                  value={counted(
                    restock.reduce((units, { refill }) => units + refill, 0),
                    'unit',
                  )}
                >
                  in {counted(restock.length, 'row')}
                </Figure>
              )}
            </div>
            <Problems alarms={alarms} fleet={fleet} />
            <Hubs fleet={fleet} sales={sales} />
            {restock && <Refill rows={restock} />}
          </div>
        )}
      </Loaded>
    </>
  )
}

const order: readonly Alarm['severity'][] = ['critical', 'warning', 'info']

function Problems({ alarms, fleet }: { alarms: readonly Alarm[]; fleet: readonly FleetHub[] }): JSX.Element {
  const sorted = alarms.toSorted((one, other) => order.indexOf(one.severity) - order.indexOf(other.severity))
  return (
    <Card title="Problems" name="problems">
      {alarms.length === 0 && <Nothing>Nothing is wrong.</Nothing>}
      <ul class="grid gap-2">
        {sorted.map((alarm) => (
          <Problem
            key={alarm.id}
            alarm={alarm}
            hub={fleet.find(({ hub_id }) => hub_id === alarm.hub_id)?.name}
          />
        ))}
      </ul>
    </Card>
  )
}

/** An open alarm with its remedy. */
export function Problem({ alarm, hub }: { alarm: Alarm; hub?: string | undefined }): JSX.Element {
  const { id, hub_id, severity, message, remedy, raised_at, acknowledged_at, acknowledged_by } = alarm
  const orderId = orderOf(alarm)
  const looks = severityLooks[severity]
  const nameOf = useActorName()
  return (
    <li class={`border-l-4 ${looks.class} pl-3 py-1`} data-alarm={alarm.kind}>
      <h3 class="font-medium flex items-start gap-2">
        <Icon icon={looks.icon} class={`mt-1 ${looks.text}`} />
        <span>
          <span class="sr-only">{title(severity)}: </span>
          {message}
        </span>
      </h3>
      <p>{remedy}</p>
      <p class="text-sm quiet flex flex-wrap items-center gap-x-3">
        {hub_id !== null && hub !== undefined && (
          <Link to={`/hubs/${hub_id}`} class="link touch">
            {hub}
          </Link>
        )}
        {orderId !== undefined && can('orders:read', hub_id ?? undefined) && (
          <Link to={`/orders/${orderId}`} class="link touch">
            Order {orderId}
          </Link>
        )}
        <span>{ago(raised_at)}</span>
        {acknowledged_at !== null ? (
          <span>acknowledged by {nameOf(acknowledged_by ?? '')}</span>
        ) : can('hubs:write', hub_id ?? undefined) ? (
          <button
            class="btn btn-sm btn-ghost"
            onClick={() =>
              void act('Acknowledge it', () =>
                ask('POST /owners/alarms/{alarm_id}/acknowledge', { params: { alarm_id: id } }),
              )
            }
          >
            Acknowledge<span class="sr-only">: {message}</span>
          </button>
        ) : null}
      </p>
    </li>
  )
}

/** The number of the order that an alarm is about. The alarm of a stuck refund has it in its details. */
function orderOf({ subject, details }: Alarm): string | undefined {
  const id = subject?.startsWith('refund ') ? details['order_id'] : undefined
  return typeof id === 'number' ? String(id) : /^order (\d+)$/.exec(subject ?? '')?.[1]
}

interface HubsProps {
  fleet: readonly FleetHub[]
  sales: Now['sales']
}

function Hubs({ fleet, sales }: HubsProps): JSX.Element {
  return (
    <Card title="Hubs" name="hubs">
      <ul class="grid gap-2 md:grid-cols-2 xl:grid-cols-3">
        {fleet.map((hub) => (
          <HubCard key={hub.hub_id} hub={hub} sales={sales?.get(hub.hub_id)} />
        ))}
      </ul>
    </Card>
  )
}

const statusText: Readonly<Record<FleetHub['hub_status'], string>> = {
  active: 'sells',
  paused: 'takes no orders',
  maintenance: 'is in maintenance',
  inactive: 'was never connected',
  retired: 'is out of service',
}

/** A hub's state in a sentence. */
export const stateOf = ({ hub_status, online }: Pick<FleetHub, 'hub_status' | 'online'>): string =>
  hub_status === 'active' && !online ? 'is offline' : statusText[hub_status]

function HubCard({ hub, sales }: { hub: FleetHub; sales: HubSales | undefined }): JSX.Element {
  const { hub_id, name, online, hub_status, alarms, free_bins, warmest_fridge } = hub
  const isGood = online && hub_status === 'active'
  const problems = alarms.critical + alarms.warning + alarms.info
  const facts = [
    ...(online ? [counted(free_bins, 'free bin')] : []),
    ...(warmest_fridge ? [`warmest fridge ${warmest_fridge.temperature.toFixed(1)} °C`] : []),
    counted(problems, 'problem'),
  ]
  return (
    <li class="border border-base-300 rounded-box p-3" data-hub={hub_id}>
      <h3 class="font-medium flex items-center gap-2">
        <span
          class={`status ${isGood ? 'status-success' : alarms.critical > 0 ? 'status-error' : 'status-warning'}`}
        />
        <Link to={`/hubs/${hub_id}`} class="link touch">
          {name}
        </Link>
        <span class="font-normal text-sm quiet">{stateOf(hub)}</span>
      </h3>
      {sales && (
        <dl class="grid grid-cols-[auto_minmax(0,1fr)] gap-x-2 tabular-nums" data-sales>
          <dt class="quiet">Today</dt>
          <dd>
            {money(sales.today, sales.currency)} <span class="quiet text-sm">{lastWeek(sales)}</span>
          </dd>
          <dt class="quiet">Yesterday</dt>
          <dd>
            {money(sales.yesterday, sales.currency)} <span class="quiet text-sm">{against(sales)}</span>
          </dd>
        </dl>
      )}
      <p class="text-sm quiet">{facts.join(', ')}</p>
    </li>
  )
}

/** Number of rows of a hub in the look at today; its own list has all. */
const SHOWN_ROWS = 5

function Refill({ rows }: { rows: readonly RestockRow[] }): JSX.Element {
  const hubs = [...new Map(rows.map(({ hub_id, hub_name }) => [hub_id, hub_name]))]
  const soonest = (one: RestockRow, other: RestockRow): number =>
    (one.empty_by ?? '9999').localeCompare(other.empty_by ?? '9999') || other.refill - one.refill
  return (
    <Card title="To refill" name="refill">
      {rows.length === 0 && <Nothing>Every row is full.</Nothing>}
      <div class="grid gap-4 lg:grid-cols-2">
        {hubs.map(([id, name]) => {
          const own = rows.filter(({ hub_id }) => hub_id === id)
          return (
            <div key={id} class="min-w-0">
              <h3 class="font-medium">{name}</h3>
              <ul>
                {own
                  .toSorted(soonest)
                  .slice(0, SHOWN_ROWS)
                  .map((row) => (
                    <li key={placeText(row)} class="flex gap-2 py-1 border-b border-base-300 text-sm">
                      <span class="grow min-w-0 break-words">
                        {row.name} <span class="quiet">row {placeText(row)}</span>
                      </span>
                      <span class="tabular-nums text-right">
                        {row.blocked ? 'blocked, ' : ''}
                        {row.quantity} of {row.capacity}
                        {row.empty_by !== null && (
                          <span class="quiet">, empty by {shortDay(row.empty_by)}</span>
                        )}
                      </span>
                    </li>
                  ))}
              </ul>
              <Link to={`/planogram/${id}?show=refill`} class="btn btn-sm mt-2">
                Refill by the list ({counted(own.length, 'row')})
              </Link>
            </div>
          )
        })}
      </div>
    </Card>
  )
}

/** Sales of a hub by its own calendar: revenue in cents, and the number of orders. */
interface HubSales {
  /** The present day at the hub. */
  day: string
  currency: string
  today: number
  yesterday: number
  /** The same weekdays of the week before. */
  todayBefore: number
  yesterdayBefore: number
  ordersYesterday: number
}

/** Sales of a past day, by hub. A hub without sales is absent. */
const readDay = (day: string) =>
  keep(`sales ${day}`, async () => {
    const { data } = await ask('GET /owners/sales', { query: { from: day, to: day, group_by: 'hub' } })
    return new Map(data.map(({ key, ...row }) => [Number(key), row]))
  })

/** The days before the present day that the look at today compares. */
const compared = [-1, -7, -8] as const

/**
 * Sales of the last days of hubs. Three calls read the past days of all hubs. Hubs in another time zone may have another day, and
 * need three more. One call for each hub reads its time zone and its currency, at most once a minute.
 */
async function readHubSales(fleet: readonly FleetHub[]): Promise<ReadonlyMap<number, HubSales>> {
  const rows = fleet.map(async ({ hub_id: id, sales_today }) => {
    const { timezone, currency } = await readHubFacts(id)
    const day = today(timezone)
    const past = await Promise.all(compared.map((days) => readDay(addDays(day, days))))
    const [yesterday, todayBefore, yesterdayBefore] = past.map((sales) => sales.get(id)?.gross_revenue ?? 0)
    return [
      id,
      {
        day,
        currency,
        today: sales_today?.gross_revenue ?? 0,
        yesterday: yesterday!,
        todayBefore: todayBefore!,
        yesterdayBefore: yesterdayBefore!,
        ordersYesterday: past[0]!.get(id)?.total_orders ?? 0,
      },
    ] as const
  })
  return new Map(await Promise.all(rows))
}
