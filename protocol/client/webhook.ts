import type { Api } from './api.ts'
import { surroundings } from './system.ts'

/** An event that a webhook receives. `id` is the id of the event, the same in every delivery. */
export type WebhookEvent = Pick<Api['GET /owners/events/stream']['message'] & object, 'type' | 'data'> & {
  id: string
  timestamp: string
}

export type Verified = { ok: true; event: WebhookEvent } | { ok: false; error: NotVerified }
export type NotVerified = 'missing_header' | 'too_old' | 'wrong_signature' | 'not_json'

export interface Delivery {
  /** The unparsed body. */
  body: string
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>
  /** `whsec_…`; while a secret is rotated, the old one and the new one. */
  secret: string | readonly string[]
  /** Maximum age of a delivery in seconds, and maximum lead of its clock (default 300). */
  toleranceSeconds?: number
  /** Milliseconds since the Unix epoch. */
  now?: () => number
}

const TOLERANCE_SECONDS = 300

/** Verifies that the service has signed a delivery (Standard Webhooks), and returns its event. */
export async function verifyWebhook({ body, headers, secret, ...options }: Delivery): Promise<Verified> {
  const { toleranceSeconds = TOLERANCE_SECONDS, now = surroundings.now } = options
  const header = (name: string): string | undefined =>
    headers instanceof Headers ? (headers.get(name) ?? undefined) : [headers[name]].flat()[0]
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(header)
  if (!id || !timestamp || !signatures) return { ok: false, error: 'missing_header' }
  const isInTime = Math.abs(now() / 1000 - Number(timestamp)) <= toleranceSeconds
  if (!isInTime) return { ok: false, error: 'too_old' }
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`)
  const given = signatures
    .split(' ')
    .flatMap((each) => (each.startsWith('v1,') ? (bytesOf(each.slice(3)) ?? []) : []))
  const matches = [secret].flat().map(async (text) => {
    const bytes = bytesOf(text.replace(/^whsec_/, ''))
    if (!bytes) return false
    const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, [
      'verify',
    ])
    const all = given.map((signature) => crypto.subtle.verify('HMAC', key, signature, signed))
    return (await Promise.all(all)).includes(true)
  })
  if (!(await Promise.all(matches)).includes(true)) return { ok: false, error: 'wrong_signature' }
  try {
    return { ok: true, event: { id, ...(JSON.parse(body) as Omit<WebhookEvent, 'id'>) } }
  } catch {
    return { ok: false, error: 'not_json' }
  }
}

/** Decodes base64; undefined if the text is not base64. */
function bytesOf(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}
