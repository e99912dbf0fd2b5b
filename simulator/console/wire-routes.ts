import type { Hono } from 'hono'
import { crc16 } from '../../protocol/serial/codec.ts'
import { bodyOf } from '../interface/body.ts'
import { Refusal } from '../interface/refusal.ts'
import { LineBody } from '../interface/requests.ts'
import type { LiveOptions } from './live.ts'
import { numberOf, stationOf } from './request-parts.ts'
import { asJsonLines, asVcd } from './wire-export.ts'

/** What passes a hub's serial lines and pins: read, exported, and lines put on them. */
export function wireRoutes(app: Hono, { stations, desk }: Pick<LiveOptions, 'stations' | 'desk'>): void {
  app.get('/api/hubs/:id/wire', (c) => c.json(stationOf(c, stations).wire.entries(numberOf(c, 'after'))))
  app.get('/api/hubs/:id/wire.jsonl', (c) => {
    const { hub, wire } = stationOf(c, stations)
    c.header('Content-Disposition', `attachment; filename="hub-${hub.hardware.hubId}.jsonl"`)
    return c.body(asJsonLines(wire.entries(0)), 200, { 'content-type': 'application/jsonl' })
  })
  app.get('/api/hubs/:id/wire.vcd', (c) => {
    const { hub, wire } = stationOf(c, stations)
    c.header('Content-Disposition', `attachment; filename="hub-${hub.hardware.hubId}.vcd"`)
    return c.body(asVcd(wire.entries(0), hub.gpio.levels()), 200, { 'content-type': 'text/plain' })
  })
  app.post('/api/hubs/:id/wire', async (c) => {
    const { wires, hardware } = stationOf(c, stations).hub
    const { controller, direction, line } = await bodyOf(c, LineBody)
    const wire = wires.find(({ controllerId }) => controllerId === controller)
    if (!wire)
      throw new Refusal(
        404,
        'controller_not_found',
        `controllers: ${wires.map(({ controllerId }) => controllerId).join(', ')}`,
      )
    const whole = withCrc(line)
    if (direction === 'to_hub') wire.toHub(whole)
    else wire.toController(whole)
    desk.note(hardware.hubId, 'line', { controller, direction, line: whole })
    return c.json({ controller, direction, line: whole })
  })
}

/** A line that ends without a CRC gets the right one. */
const withCrc = (line: string): string =>
  /\*[0-9a-f]{4}$/.test(line) ? line : `${line}*${crc16(line).toString(16).padStart(4, '0')}`
