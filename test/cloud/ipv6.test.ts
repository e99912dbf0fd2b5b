import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { afterEach, expect, test } from 'vitest'
import { openAccount } from '../../cloud/commerce/processors/stripe/account.ts'
import { HttpPoster } from '../../cloud/events/webhooks/post.ts'
import { smtpSender } from '../../cloud/operations/alarms/mail.ts'
import { openMediaStore } from '../../cloud/platform/media/open-store.ts'
import { silentLog } from '../../protocol/model/log.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'

/** Each external service of the cloud at `[::1]`: sockets need the address without its brackets. */

const { clock } = systemRuntime()
const servers: (Server | SMTPServer)[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close(() => {})
})

async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answer)
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '::1', resolve))
  return `http://[::1]:${(server.address() as AddressInfo).port}`
}

test('Stripe’s API is called at an IPv6 address', async () => {
  const paths: string[] = []
  const url = await serve(({ url: path }, response) => {
    paths.push(path!)
    response.setHeader('content-type', 'application/json').end('{"object":"balance"}')
  })
  const { sdk } = openAccount({
    apiKey: 'sk_test_x',
    url,
    installation: 'i',
    clock,
    log: silentLog,
    timeoutMs: 2000,
    retries: 0,
  })
  expect(await sdk.balance.retrieve()).toMatchObject({ object: 'balance' })
  expect(paths).toEqual(['/v1/balance'])
})

test('a webhook is posted to an IPv6 address', async () => {
  const url = await serve((_request, response) => void response.writeHead(204).end())
  const poster = new HttpPoster({ clock, timeoutMs: 2000, allowHttp: true, allowPrivate: true })
  expect(await poster.post(`${url}/hook`, {}, '{}')).toEqual({ status: 204 })
  poster.stop()
})

test('media are stored at an IPv6 address', async () => {
  const url = await serve((_request, response) => void response.writeHead(404).end())
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' }
  const store = openMediaStore(`s3://bucket?endpoint=${encodeURIComponent(url)}`, credentials)
  expect(await store.read('maintenance/1/00000000-0000-7000-8000-000000000000.png')).toBeNull()
})

test('mail is sent to an IPv6 address', async () => {
  const mails: string[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, session, done) {
      stream.resume().on('end', () => {
        mails.push(...session.envelope.rcptTo.map(({ address }) => address))
        done()
      })
    },
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '::1', resolve))
  const { port } = server.server.address() as AddressInfo
  const send = smtpSender({ url: `smtp://[::1]:${port}`, from: 'larder@example.org', timeoutMs: 2000 })
  await send({ id: '1', to: { name: '', address: 'owner@example.org' }, subject: 's', text: 't' })
  expect(mails).toEqual(['owner@example.org'])
})
