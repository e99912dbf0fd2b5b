import type { Context, Hono } from 'hono'
import { faultKinds } from '../faults/fault-types.ts'
import { bodyOf } from '../interface/body.ts'
import { Refusal } from '../interface/refusal.ts'
import { ActBody, ChanceBody, FaultBody, PowerBody } from '../interface/requests.ts'
import type { Json } from '../scenarios/placeholders.ts'
import type { StepKind } from '../scenarios/schema.ts'
import type { SimulatedHub } from '../simulated-hub.ts'
import type { LiveOptions } from './live.ts'
import { numberOf, stationOf } from './request-parts.ts'

/** One hub: how it stands, what really happened, and what people, faults and power do to it. */
export function hubRoutes(app: Hono, { stations, desk }: Pick<LiveOptions, 'stations' | 'desk'>): void {
  const hubOf = (c: Context): SimulatedHub => stationOf(c, stations).hub
  /** For who records what is done here; as JSON, in which absent keys are not there. */
  const note = (c: Context, kind: StepKind, what: object | string): void =>
    desk.note(hubOf(c).hardware.hubId, kind, JSON.parse(JSON.stringify(what)) as Json)

  app.get('/api/hubs/:id/state', (c) => c.json(hubOf(c).state()))
  app.get('/api/hubs/:id/actuations', (c) => c.json(hubOf(c).actuations(numberOf(c, 'after'))))

  app.get('/api/hubs/:id/faults/types', (c) => {
    hubOf(c)
    return c.json(Object.entries(faultKinds).map(([type, kind]) => ({ type, ...kind })))
  })
  app.get('/api/hubs/:id/faults', (c) => c.json(hubOf(c).faults.active()))
  app.post('/api/hubs/:id/faults', async (c) => {
    const hub = hubOf(c)
    const request = await bodyOf(c, FaultBody)
    try {
      const fault = hub.faults.raise(request)
      note(c, 'fault', request)
      return c.json(fault, 201)
    } catch (error) {
      if (error instanceof RangeError) throw new Refusal(422, 'invalid_fault', error.message)
      throw error
    }
  })
  app.delete('/api/hubs/:id/faults/:fault', (c) => {
    const id = c.req.param('fault')
    const { faults } = hubOf(c)
    const type = faults.active().find((one) => one.id === id)?.type
    if (type === undefined || !faults.clear(id))
      throw new Refusal(404, 'fault_not_found', `there is no active fault ${id}`)
    note(c, 'clear', type)
    return c.json({ id, cleared: true })
  })
  app.delete('/api/hubs/:id/faults', (c) => {
    hubOf(c).faults.clearAll()
    note(c, 'clear', 'all')
    return c.json({ cleared: true })
  })

  app.post('/api/hubs/:id/chance', async (c) => {
    const { seed } = await bodyOf(c, ChanceBody)
    hubOf(c).reseed(seed)
    return c.json({ seed })
  })
  app.post('/api/hubs/:id/act', async (c) => {
    const hub = hubOf(c)
    const deed = await bodyOf(c, ActBody)
    const result = hub.act(deed)
    if (!result.ok) throw new Refusal(409, 'not_possible', result.reason)
    note(c, 'act', deed)
    return c.json({ action: deed.action, target: deed.target, ...result.detail })
  })
  app.post('/api/hubs/:id/power', async (c) => {
    const hub = hubOf(c)
    const body = await bodyOf(c, PowerBody)
    const { state, controller, for_ms } = body
    if (controller !== undefined && !hub.controllers.has(controller))
      throw new Refusal(404, 'controller_not_found', `controllers: ${[...hub.controllers.keys()].join(', ')}`)
    hub.power(state, controller, for_ms)
    note(c, 'power', body)
    return c.json({ state, controllers: hub.state().controllers })
  })
}
