import type { Clock } from '../../../protocol/model/runtime.ts'
import { timestamp } from '../calendar/timestamps.ts'
import { JsonText } from '../store/json.ts'
import { etagOf } from './web.ts'
import { reply, type Handlers } from './handler.ts'
import { SERVICE_NAME, SERVICE_VERSION, type OpenApiDocument } from './openapi.ts'

/**
 * The service's name and its OpenAPI document. The document is built at its first request, so that it does not delay
 * the start.
 */
export function descriptionHandlers(
  clock: Clock,
  describe: () => OpenApiDocument,
): Handlers<'root.index' | 'root.openapi'> {
  const text = once(() => {
    const json = JSON.stringify(describe())
    return reply(new JsonText<Record<string, unknown>>(json), { headers: { ETag: etagOf(json) } })
  })
  return {
    'root.index': () =>
      Promise.resolve({
        service: SERVICE_NAME.toLowerCase(),
        version: SERVICE_VERSION,
        status: 'ok',
        time: timestamp(clock.now()),
      }),
    'root.openapi': () => Promise.resolve(text()),
  }
}

function once<T>(make: () => T): () => T {
  let kept: { value: T } | undefined
  return () => (kept ??= { value: make() }).value
}
