import webPush from 'web-push'
import { z } from 'zod'
import { resultOf, type Sender } from './sender.ts'

const TIMEOUT_MS = 10_000

/** What a browser's `PushSubscription.toJSON()` says. */
const Subscription = z.object({
  endpoint: z.url().max(2000),
  keys: z.object({ p256dh: z.string().min(1).max(200), auth: z.string().min(1).max(100) }),
})

export interface WebPushOptions {
  publicKey: string
  privateKey: string
  /** `mailto:` or `https:`: whom a push service may complain to. */
  subject: string
  /** Where push services are: `https://host`, or `https://*.domain`. A browser chooses its own, so only these are called. */
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
      let request: webPush.RequestDetails
      try {
        request = webPush.generateRequestDetails(subscription, JSON.stringify({ ...message, ...about }), {
          TTL,
          vapidDetails: { subject, publicKey, privateKey },
        })
      } catch {
        // Keys that no browser made: nothing can be encrypted for them.
        return 'gone'
      }
      const { 'Content-Length': _, ...headers } = request.headers
      const response = await fetch(request.endpoint, {
        method: 'POST',
        signal: AbortSignal.timeout(TIMEOUT_MS),
        redirect: 'error',
        headers: headers as Record<string, string>,
        body: new Uint8Array(request.body ?? new ArrayBuffer(0)),
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
