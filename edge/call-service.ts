import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { text } from 'node:stream/consumers'
import { bareHost, callableHost } from '../protocol/model/address.ts'

const ANSWER_MS = 5000

/**
 * `GET` of a path of the local API of this machine's hub service. Its certificate is not verified: it names the hub, not the
 * loopback address. Rejects if there is no answer within 5 s.
 */
export function callService(
  { host, port, cert }: { host: string; port: number; cert?: string | undefined },
  path: '/health' | '/healthz',
): Promise<{ status: number | undefined; body: string }> {
  const request = cert === undefined ? requestHttp : requestHttps
  const options = {
    host: bareHost(callableHost(host)),
    port,
    path,
    rejectUnauthorized: false,
    signal: AbortSignal.timeout(ANSWER_MS),
  }
  return new Promise((resolve, reject) => {
    request(options, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode, body }), reject)
    })
      .once('error', reject)
      .end()
  })
}
