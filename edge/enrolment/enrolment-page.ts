import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Log } from '../../protocol/model/log.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { listen, type ListenOptions } from '../local-api/front.ts'
import { superviseBy, type Notify } from '../supervision.ts'
import { enrol } from './enrol.ts'
import type { HubPlace } from './enrolment.ts'

export interface EnrolmentPageOptions {
  /** Where the page is served. */
  local: Pick<ListenOptions, 'host' | 'port' | 'bounds' | 'cert' | 'key'>
  place: HubPlace
  runtime: Runtime
  log: Log
  notify: Notify
  watchdogMs: number | undefined
}

/** A form with an address and a code is much shorter. */
const MAX_BYTES = 4096

/**
 * The page of a board that is not enrolled: a form for the cloud's address and the claim code. Nothing is driven. The code is
 * the credential, so the page asks for no token. Resolves when the board is enrolled and the page has ended.
 */
export async function serveEnrolment(options: EnrolmentPageOptions): Promise<void> {
  const { local, place, runtime, log, notify, watchdogMs } = options
  let enrolled = (): void => {}
  const done = new Promise<void>((resolve) => (enrolled = resolve))
  let isBusy = false
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url } = request
    if (method === 'GET' && url === '/healthz') return send(response, 200, 'ok')
    if (method === 'GET' && url === '/') return send(response, 200, page())
    if (method !== 'POST' || url !== '/enroll') return send(response, 503, page('The hub is not enrolled.'))
    // Another website in the technician's browser must not choose the cloud.
    if (!isOwnForm(request)) return send(response, 403, page('The form of another website is refused.'))
    let text: string
    try {
      text = await textOf(request)
    } catch (error) {
      return send(response, 422, page((error as Error).message))
    }
    const form = new URLSearchParams(text)
    const typed = { cloud: form.get('cloud') ?? '', code: form.get('code') ?? '' }
    if (isBusy) return send(response, 409, page('An enrolment is in progress.', typed))
    isBusy = true
    try {
      const { hub_id, name } = await enrol({ ...typed, ...place, runtime })
      log.info({ hub: hub_id }, 'the board is enrolled')
      send(response, 200, page(`This is hub ${hub_id}, ${name}. It starts now.`))
      if (response.closed) enrolled()
      else response.once('close', enrolled)
    } catch (error) {
      send(response, 422, page((error as Error).message, typed))
    } finally {
      isBusy = false
    }
  }
  const listener = await listen({ ...local, runtime }, (request, response) => void answer(request, response))
  log.warn(
    { url: listener.url },
    'the hub is not enrolled and drives nothing: enrol it at its page or by `larder enroll`, or set MQTT_PASSWORD',
  )
  const leave = superviseBy({ clock: runtime.clock, log, notify, watchdogMs, probes: {} })
  await done
  leave()
  await listener.close()
}

/** Browsers name the site of a form. Other programs send neither header. */
function isOwnForm({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site']
  const { origin, host } = headers
  if (site !== undefined && site !== 'same-origin') return false
  return origin === undefined || (URL.canParse(origin) && new URL(origin).host === host)
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > MAX_BYTES) throw new Error('The form is too long.')
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, {
    'content-type': body.startsWith('<') ? 'text/html; charset=utf-8' : 'text/plain',
    'cache-control': 'no-store',
    // Other pages must neither frame the form nor send it.
    'content-security-policy':
      "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
    connection: 'close',
  })
  response.end(body)
}

const escaped = (text: string): string => text.replaceAll(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`)

/** `typed`: the values of a refused form, so that a person corrects them instead of typing them again. */
const page = (message = '', typed = { cloud: '', code: '' }): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Enrol this hub</title>
<style>
  body { font: 18px/1.5 system-ui, sans-serif; max-width: 32rem; margin: 2rem auto; padding: 0 1rem; color-scheme: light dark }
  label, input, button { display: block; width: 100%; font: inherit; box-sizing: border-box }
  input, button { min-height: 3rem; margin: .25rem 0 1rem; padding: .5rem }
</style>
<h1>Enrol this hub</h1>
<p role="status">${escaped(message)}</p>
<form method="post" action="/enroll">
  <label for="cloud">Address of the cloud</label>
  <input id="cloud" name="cloud" type="url" required placeholder="https://larder.example" value="${escaped(typed.cloud)}">
  <label for="code">Claim code</label>
  <input id="code" name="code" required maxlength="16" autocomplete="off" autocapitalize="characters" value="${escaped(typed.code)}">
  <button>Enrol</button>
</form>
`
