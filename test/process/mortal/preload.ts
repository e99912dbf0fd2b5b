import { Server } from 'node:http'
import { register } from 'node:module'
import { dyingAt } from './checkpoint.ts'

/**
 * Loaded before the real cloud program. It replaces the compiled checkpoints, which do nothing in production,
 * by checkpoints that can kill the process (`checkpoint.ts`). A request with `X-Die-At: N` dies at the N-th
 * checkpoint of its own work. A request with `X-Webhook-Dies-At: N` arms the next webhook in the same way.
 */
const replacement = new URL('./checkpoint.js', import.meta.url).href
register(
  `data:text/javascript,${encodeURIComponent(`
    export async function resolve(specifier, context, next) {
      const found = await next(specifier, context)
      return new URL(found.url).pathname.endsWith('/protocol/model/checkpoint.js')
        ? { ...found, url: ${JSON.stringify(replacement)} }
        : found
    }`)}`,
)

let webhookDiesAt: number | undefined
const emit = Reflect.get(Server.prototype, 'emit') as (
  this: Server,
  event: string | symbol,
  ...args: unknown[]
) => boolean

Server.prototype.emit = function (this: Server, event: string | symbol, ...args: unknown[]): boolean {
  if (event !== 'request') return emit.call(this, event, ...args)
  const { headers, url } = args[0] as { headers: Record<string, string | undefined>; url?: string }
  const own = headers['x-die-at']
  const next = headers['x-webhook-dies-at']
  if (next !== undefined) webhookDiesAt = Number(next)
  let at = own === undefined ? undefined : Number(own)
  if (url === '/webhooks/payments') {
    at = webhookDiesAt
    webhookDiesAt = undefined
  }
  if (at === undefined) return emit.call(this, event, ...args)
  return dyingAt(at, () => emit.call(this, event, ...args))
}
