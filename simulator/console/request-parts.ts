import type { Context } from 'hono'
import type { Station } from '../fleet.ts'
import type { z } from 'zod'
import { isPlainBody } from '../../protocol/model/http-refusals.ts'
import { complaint } from '../interface/requests.ts'

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

/** The JSON body, whatever the content type is. Throws `Refusal`. */
export async function bodyOf<T extends z.ZodType>(c: Context, schema: T): Promise<z.output<T>> {
  if (!isPlainBody(c.req.header('content-encoding')))
    throw new Refusal(415, 'unsupported_media_type', 'the body must be sent without a Content-Encoding')
  const text = await c.req.text()
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw new Refusal(400, 'invalid_json', 'the body must be JSON')
  }
  const parsed = schema.safeParse(json)
  if (!parsed.success) throw new Refusal(422, 'validation_error', complaint(parsed.error))
  return parsed.data
}

/** Thrown by a handler to answer with an error. */
export class Refusal extends Error {
  readonly status: 400 | 403 | 404 | 409 | 413 | 415 | 422
  readonly code: string
  constructor(status: Refusal['status'], code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}
