import type { TemperatureSpan } from '../../../protocol/contract/owner-hubs.ts'
import { DAY_MS } from '../../../protocol/model/times.ts'
import { readTenures, within } from '../../platform/credentials/hub-access.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { csvLine, csvLines } from '../../platform/csv.ts'
import { badRange, isDay, rangeIn, requireOrder } from '../../platform/http/date-range.ts'
import { requireFridge } from './require-fridge.ts'

/** A longer period takes several requests. */
const MAX_DAYS = 31

const columns = ['fridge', 'at', 'min', 'mean', 'max', 'samples'] as const

/** The temperatures of a hub's fridges over time. */
export const temperatureHandlers = (context: CloudContext): Handlers<'owner.hubs.temperatures'> => ({
  async 'owner.hubs.temperatures'(request) {
    const { db, runtime } = context
    const { query, credential } = request
    const tenures = await readTenures(db.kysely, credential, query.hub_id)
    const now = runtime.clock.now()
    const { timezone } = await db.kysely
      .selectFrom('hubs')
      .select('timezone')
      .where('id', '=', query.hub_id)
      .executeTakeFirstOrThrow()
    requireOrder([timezone], query)
    const asked = rangeIn(timezone, query)
    const to = query.to === undefined ? now + 1 : asked.until
    const from = query.from === undefined ? Math.min(to, now) - DAY_MS : asked.since
    if (query.from !== undefined) {
      if (from > to) throw badRange('from', 'must not be after `to`', query.from)
      // The days of a calendar are an hour longer in sum if a clock is put back.
      const slackMs = isDay(query.from) ? 3_600_000 : 1
      if (to - from > MAX_DAYS * DAY_MS + slackMs)
        throw badRange('from', `at most ${MAX_DAYS} days before \`to\``, query.from)
    }
    let rows = db.kysely
      .selectFrom('temperatures')
      .select(['fridge', 'at', 'min', 'max', 'sum', 'samples'])
      .where('hub_id', '=', query.hub_id)
      .where('at', '>=', from)
      .where('at', '<', to)
      .where(within('at', tenures))
    if (query.fridge !== undefined) rows = rows.where('fridge', '=', query.fridge)
    const found = await rows.orderBy('at').orderBy('fridge').execute()
    if (found.length === 0 && query.fridge !== undefined)
      await requireKnown(context, { hub: query.hub_id, fridge: query.fridge })
    const spans = found.map(({ fridge, at, min, max, sum, samples }): TemperatureSpan => {
      const mean = Math.round((sum / samples) * 100) / 100
      return { fridge, at: timestamp(at), min, mean, max, samples }
    })
    return request.wantsOther ? csvLine(columns) + csvLines(columns, spans) : spans
  },
})

/** Throws `fridge_not_found` for a fridge that the hub does not have and never had. */
async function requireKnown(context: CloudContext, which: { hub: number; fridge: number }): Promise<void> {
  const { hub, fridge } = which
  const recorded = await context.db.kysely
    .selectFrom('temperatures')
    .select('at')
    .where('hub_id', '=', hub)
    .where('fridge', '=', fridge)
    .limit(1)
    .executeTakeFirst()
  if (!recorded) await requireFridge(context, which)
}
