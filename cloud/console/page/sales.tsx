import type { JSX } from 'preact'
import type { GroupBy } from '../../../protocol/contract/owner-reports.ts'
import type { Api } from '../../../protocol/client/client.ts'
import { unitsOf } from '../../../protocol/model/money.ts'
import { address, setQuery } from './address.ts'
import { useData } from './data.ts'
import { addDays, money, title, today } from './format.ts'
import { useHubFacts } from './hubs.ts'
import { Card, ExportButton, Figure, Heading, HubSelect, Input, Loaded, Nothing } from './parts.tsx'
import { Plot, plotColors } from './plot.tsx'
import { ask, csv } from './session.ts'

type Report = Api['GET /owners/sales']['answer']

const groups: readonly GroupBy[] = ['day', 'week', 'month', 'hour', 'product', 'category', 'hub']
const isTime = (group: GroupBy): boolean => ['day', 'week', 'month', 'hour'].includes(group)

const ranges = [
  { name: 'Yesterday', from: -1, to: -1 },
  { name: '7 days', from: -6, to: 0 },
  { name: '30 days', from: -29, to: 0 },
  { name: '90 days', from: -89, to: 0 },
  { name: 'A year', from: -364, to: 0 },
] as const

export function SalesPage(): JSX.Element {
  const hub = Number(address.value.query.get('hub')) || undefined
  const facts = useHubFacts(hub)
  return <Loaded of={facts}>{(known) => <Sales day={today(known?.timezone)} hub={hub} />}</Loaded>
}

/** Sales of any range of days: figures, a plot and a table by time, product, category or hub. */
function Sales({ day, hub }: { day: string; hub: number | undefined }): JSX.Element {
  const { query: given } = address.value
  const group = (given.get('group') ?? 'day') as GroupBy
  const query = {
    ...(hub !== undefined && { hub_id: hub }),
    from: given.get('from') ?? addDays(day, -29),
    to: given.get('to') ?? day,
    group_by: group,
  }
  const report = useData(() => ask('GET /owners/sales', { query }), [query])
  return (
    <>
      <Heading text="Sales">
        <ExportButton
          read={() => csv('GET /owners/sales', { query })}
          file={`sales-${query.from}-${query.to}.csv`}
        />
      </Heading>
      <Card class="mb-3">
        <div class="grid gap-2 grid-cols-2 md:grid-cols-3 items-end mb-2">
          <div class="col-span-2 md:col-span-1">
            <HubSelect value={hub} all="All hubs" />
          </div>
          {(['from', 'to'] as const).map((name) => (
            <Input
              key={name}
              label={name === 'from' ? 'From' : 'To'}
              type="date"
              value={query[name]}
              onChange={({ currentTarget }) => setQuery({ [name]: currentTarget.value })}
            />
          ))}
        </div>
        <div class="flex flex-wrap gap-1" role="group" aria-label="Range">
          {ranges.map(({ name, from, to }) => {
            const [first, last] = [addDays(day, from), addDays(day, to)]
            const isChosen = first === query.from && last === query.to
            return (
              <button
                key={name}
                class={`btn btn-sm ${isChosen ? 'btn-primary' : ''}`}
                aria-pressed={isChosen}
                onClick={() => setQuery({ from: first, to: last })}
              >
                {name}
              </button>
            )
          })}
        </div>
        <div class="flex flex-wrap gap-1 mt-2" role="group" aria-label="Rows">
          {groups.map((name) => (
            <button
              key={name}
              class={`btn btn-sm ${name === group ? 'btn-primary' : ''}`}
              aria-pressed={name === group}
              onClick={() => setQuery({ group: name })}
            >
              By {name}
            </button>
          ))}
        </div>
      </Card>
      <Loaded of={report}>{(data) => <Result report={data} />}</Loaded>
    </>
  )
}

const figures = [
  ['gross_revenue', 'Revenue'],
  ['net_profit', 'Profit'],
  ['cost_of_goods', 'Cost of goods'],
  ['discount_total', 'Discounts'],
  ['tax_total', 'Tax'],
  ['refunded_total', 'Refunded'],
] as const

function Result({ report }: { report: Report }): JSX.Element {
  const { totals, currency, data, group_by: group } = report
  const nameOf = (row: Report['data'][number]): string =>
    row.name ?? (row.key === '' ? 'No category' : row.key)
  const unit = unitsOf(currency)
  // A plot of many products would show nothing; the table has all.
  const plotted = isTime(group) ? data : data.slice(0, 12)
  return (
    <div class="grid gap-3">
      <div class="grid gap-3 grid-cols-2 lg:grid-cols-4">
        {figures.map(([key, label]) => (
          <Figure key={key} name={key} label={label} value={money(totals[key], currency)} />
        ))}
        <Figure name="total_orders" label="Orders" value={totals.total_orders.toLocaleString('en')} />
        <Figure name="units_sold" label="Units" value={totals.units_sold.toLocaleString('en')} />
      </div>
      <Card title={`Revenue and profit by ${group}`} name="plot">
        {data.length === 0 ? (
          <Nothing>No sales in this range.</Nothing>
        ) : (
          <Plot
            kind="bars"
            label={`Revenue and profit by ${group}, ${report.from} to ${report.to}. The table below has the numbers.`}
            x={plotted.map((_, index) => index)}
            nameOf={(index) => shortName(plotted[index] ? nameOf(plotted[index]) : '')}
            series={[
              {
                name: 'Revenue',
                color: plotColors[0]!,
                values: plotted.map((row) => row.gross_revenue / unit),
              },
              { name: 'Profit', color: plotColors[1]!, values: plotted.map((row) => row.net_profit / unit) },
            ]}
            valueOf={(value) => money(Math.round(value * unit), currency)}
          />
        )}
      </Card>
      <Card title="Numbers" name="numbers">
        <table class="table table-sm">
          <thead>
            <tr>
              <th>{title(group)}</th>
              <th class="text-right hidden sm:table-cell">Orders</th>
              <th class="text-right">Units</th>
              <th class="text-right">Revenue</th>
              <th class="text-right hidden sm:table-cell">Refunded</th>
              <th class="text-right">Profit</th>
            </tr>
          </thead>
          <tbody>
            {(isTime(group) ? data.toReversed() : data).map((row) => (
              <tr key={row.key} data-key={row.key} class="tabular-nums">
                <th class="font-normal break-words whitespace-normal">{nameOf(row)}</th>
                <td class="text-right hidden sm:table-cell">{row.total_orders}</td>
                <td class="text-right">{row.units_sold}</td>
                <td class="text-right">{money(row.gross_revenue, currency)}</td>
                <td class="text-right hidden sm:table-cell">{money(row.refunded_total, currency)}</td>
                <td class="text-right">{money(row.net_profit, currency)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Card>
    </div>
  )
}

/** `2026-11-26` → `11-26`; a long name is cut. */
const shortName = (name: string): string => {
  const day = /^\d{4}-(\d\d-\d\d|W\d\d)$/.exec(name)
  return day ? day[1]! : name.length > 12 ? `${name.slice(0, 11)}…` : name
}
