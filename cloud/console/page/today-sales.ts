import type { FleetHub } from '../../../protocol/contract/owner-reports.ts'
import { keep } from './data.ts'
import { addDays, today } from './format.ts'
import { readHubFacts } from './hubs.ts'
import { ask } from './session.ts'

/** Sales of a hub by its own calendar: revenue in cents, and the number of orders. */
export interface HubSales {
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
export async function readHubSales(fleet: readonly FleetHub[]): Promise<ReadonlyMap<number, HubSales>> {
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
