import { ECDH } from 'node:crypto'
import { generateRequestDetails } from 'web-push-neo'
import { z } from 'zod'
import { resultOf, type Sender } from './sender.ts'

const TIMEOUT_MS = 10_000

/**
 * The result of a browser's `PushSubscription.toJSON()`, with keys that can encrypt a message (RFC 8291 §3.1,
 * §3.2).
 */
const Subscription = z.object({
  endpoint: z.url().max(2000),
  keys: z.object({
    p256dh: z.string().max(200).refine(isPoint),
    auth: z.string().refine((text) => Buffer.from(text, 'base64url').length === 16),
  }),
})

/** Whether a text is an uncompressed point on P-256. */
function isPoint(text: string): boolean {
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.length !== 65) return false
  try {
    return ECDH.convertKey(bytes, 'prime256v1').length > 0
  } catch {
    return false
  }
}

export interface WebPushOptions {
  publicKey: string
  privateKey: string
  /** `mailto:` or `https:`: the contact for complaints of a push service. */
  subject: string
  /**
   * Allowed push services: `https://host`, or `https://*.domain`. A browser chooses its own service, so only
   * these are called.
   */
  origins: readonly string[]
  ttlSeconds: number
}

/** Web Push (RFC 8030, 8291, 8292) to browsers. */
export function webPushSender(options: WebPushOptions): Sender {
  const { subject, publicKey, privateKey, ttlSeconds: TTL } = options
  const isPushService = originMatcher(options.origins)
  return {
    async send(device, message, about) {
      const subscription = subscriptionOf(device?.token)
      if (!subscription || !isPushService(new URL(subscription.endpoint))) return 'gone'
      const payload = JSON.stringify({ ...message, ...about })
      const { headers, body } = await generateRequestDetails(subscription, payload, {
        TTL,
        topic: about.tag,
        vapidDetails: { subject, publicKey, privateKey },
      })
      delete headers['Content-Length']
      const response = await fetch(subscription.endpoint, {
        method: 'POST',
        signal: AbortSignal.timeout(TIMEOUT_MS),
        redirect: 'error',
        headers,
        body,
      })
      await response.body?.cancel()
      return resultOf(response.status)
    },
  }
}

function subscriptionOf(token: string | undefined): z.infer<typeof Subscription> | undefined {
  try {
    return Subscription.parse(JSON.parse(token ?? ''))
  } catch {
    return undefined
  }
}

export function originMatcher(origins: readonly string[]): (url: URL) => boolean {
  const known = origins.map((origin) => {
    const { protocol, host } = new URL(origin.replace('://*.', '://'))
    return { protocol, host, isWild: origin.includes('://*.') }
  })
  return (url) =>
    known.some(
      ({ protocol, host, isWild }) =>
        url.protocol === protocol && (isWild ? url.host.endsWith(`.${host}`) : url.host === host),
    )
}
