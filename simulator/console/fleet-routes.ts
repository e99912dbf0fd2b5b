import type { Context, Hono } from 'hono'
import type { HardwareDescription } from '../../protocol/model/hardware.ts'
import type { Fleet } from '../fleet.ts'
import { bodyOf } from '../interface/body.ts'
import { Refusal } from '../interface/refusal.ts'
import { HubBody, WorldBody } from '../interface/requests.ts'
import type { SimulatedHub } from '../simulated-hub.ts'
import { hubLogin } from './hub-login.ts'
import { stationOf } from './request-parts.ts'

export interface FleetRoutesOptions {
  fleet: Fleet
  /** The address and the token of a hub's own page, where they are known. */
  loginOf: (hubId: number) => { url: string; token: string } | undefined
}

/** The hubs of this program: which there are, where their own pages are, and their worlds. */
export function fleetRoutes(app: Hono, { fleet, loginOf }: FleetRoutesOptions): void {
  const hubOf = (c: Context): SimulatedHub => stationOf(c, fleet.stations).hub

  app.get('/api/hubs', (c) => c.json([...fleet.stations.keys()].map((hub_id) => ({ hub_id }))))
  app.post('/api/hubs', async (c) => {
    const { hub_id, like } = await bodyOf(c, HubBody)
    const model = fleet.stations.get(like)
    if (!model) throw new Refusal(404, 'hub_not_found', `hub ${like} is not simulated here`)
    const { hardware } = (await fleet.add(likeness(model.hub.hardware, hub_id))).hub
    return c.json({ hub_id, hardware }, 201)
  })
  app.get('/api/hubs/:id', (c) => c.json({ hardware: hubOf(c).hardware }))
  app.delete('/api/hubs/:id', async (c) => {
    const { hardware } = hubOf(c)
    await fleet.remove(hardware.hubId)
    return c.json({ hub_id: hardware.hubId, removed: true })
  })
  app.get('/api/hubs/:id/login', (c) => {
    const login = loginOf(hubOf(c).hardware.hubId)
    if (!login)
      throw new Refusal(404, 'login_not_known', 'HUB_URL and HUB_TOKEN_FILE do not say where its own page is')
    return c.json(hubLogin(login.url, login.token))
  })
  app.get('/api/worlds', (c) => c.json(fleet.worlds()))
  app.post('/api/hubs/:id/world', async (c) => {
    const { hubId } = hubOf(c).hardware
    const { action, name = '' } = await bodyOf(c, WorldBody)
    if (action === 'save') fleet.save(hubId, name)
    else if (action === 'load') await fleet.load(hubId, name)
    else await fleet.reset(hubId)
    return c.json({ action, worlds: fleet.worlds() })
  })
}

/** Another hub of the same hardware; its serial ports are links of its own. */
function likeness(hardware: HardwareDescription, hubId: number): HardwareDescription {
  const controllers = hardware.controllers.map((one) => ({ ...one, port: `ports/${hubId}/${one.id}` }))
  return { ...hardware, hubId, controllers }
}
