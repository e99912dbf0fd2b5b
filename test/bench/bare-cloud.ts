import { createAdaptorServer } from '@hono/node-server'
import { Aedes } from 'aedes'
import { Hono } from 'hono'
import { createServer, type AddressInfo, type Server } from 'node:net'

/**
 * The first process of the bare hops: HTTP by Hono, and the broker. A request is published to the hub's
 * process, and answered with its reply. No store, no credentials, no checks.
 */
const broker = await Aedes.createBroker()
const waiting = new Map<string, (body: string) => void>()
let count = 0

broker.subscribe(
  'up',
  (packet, done) => {
    const text = packet.payload.toString()
    waiting.get(text)?.(text)
    waiting.delete(text)
    done()
  },
  () => {},
)

const app = new Hono()
app.post('/open_bin', async (c) => {
  const id = String(++count)
  const answer = new Promise<string>((resolve) => waiting.set(id, resolve))
  const packet = { cmd: 'publish', qos: 1, dup: false, retain: false, topic: 'down', payload: id } as const
  broker.publish(packet, () => {})
  return c.json({ status: 'ok', id: await answer })
})

const http = createAdaptorServer({ fetch: app.fetch }) as Server
const mqtt = createServer({ noDelay: true }, broker.handle)
const portOf = (server: Server): Promise<number> =>
  new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)),
  )

process.once('disconnect', () => process.exit(0))
process.send!({ httpPort: await portOf(http), mqttPort: await portOf(mqtt) })
