import type { TemperatureSpan } from '../../../protocol/contract/owner-hubs.ts'
import { DAY_MS } from '../../../protocol/model/program-settings.ts'
import { readTenures, within } from '../../platform/credentials/hub-access.ts'
import { ApiError } from '../../platform/api-error.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { csvLine, csvLines } from '../../platform/csv.ts'
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
    const to = query.to === undefined ? now + 1 : Date.parse(query.to)
    const from = query.from === undefined ? Math.min(to, now) - DAY_MS : Date.parse(query.from)
    if (from > to) throw badRange('from', 'must not be after `to`', query.from)
    if (to - from > MAX_DAYS * DAY_MS + 1)
      throw badRange('from', `at most ${MAX_DAYS} days before \`to\``, query.from)
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

const badRange = (field: string, why: string, input: unknown): ApiError =>
  ApiError.invalid({ loc: ['query', field], msg: `Value error, ${why}`, type: 'value_error', input })
