import { Agent, request } from 'node:http'
import { SIGNATURE_HEADER } from './webhook.ts'

/**
 * Uses `node:http` over persistent connections: `fetch` takes several times as long for the calls that follow
 * each payment.
 */
const sandboxAgent = new Agent({ keepAlive: true })

/** Sends the sandbox's events to this service's own webhook, as a processor would. */
export function post(url: string, body: string, signature: string): Promise<boolean> {
  return new Promise((resolve) => {
    const sent = request(url, {
      method: 'POST',
      agent: sandboxAgent,
      headers: {
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(body),
        [SIGNATURE_HEADER]: signature,
      },
      signal: AbortSignal.timeout(5000),
    })
    sent.once('response', (answer) => {
      const isTaken = answer.statusCode === 200
      answer.once('end', () => resolve(isTaken)).once('error', () => resolve(false))
      answer.resume()
    })
    // An unreachable listener counts as an answer: the event is sent again.
    sent.on('error', () => resolve(false))
    sent.end(body)
  })
}
