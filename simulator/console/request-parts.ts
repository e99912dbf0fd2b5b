import type { Context } from 'hono'
import type { Station } from '../fleet.ts'
import { Refusal } from '../interface/body.ts'

export type Stations = ReadonlyMap<number, Station>

/** The hub in the request's path. Throws `Refusal`. */
export function stationOf(c: Context, stations: Stations): Station {
  const id = c.req.param('id') ?? ''
  const station = /^\d{1,10}$/.test(id) ? stations.get(Number(id)) : undefined
  if (station) return station
  const others = [...stations.keys()].join(', ')
  throw new Refusal(404, 'hub_not_found', `hub ${id} is not simulated here; hubs: ${others}`)
}

/** A number of the query, such as the caller's last entry; 0 if absent. Throws `Refusal`. */
export function numberOf(c: Context, name: string): number {
  const text = c.req.query(name) ?? '0'
  if (!/^\d{1,15}$/.test(text)) throw new Refusal(422, 'validation_error', `${name} must be a whole number`)
  return Number(text)
}
