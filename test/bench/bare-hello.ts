import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import type { AddressInfo, Server } from 'node:net'

/** The baseline of a route without work: Hono with one route. */
const app = new Hono()
app.get('/', (c) => c.json({ status: 'ok' }))

const http = createAdaptorServer({ fetch: app.fetch }) as Server
process.once('disconnect', () => process.exit(0))
http.listen(0, '127.0.0.1', () => process.send!({ port: (http.address() as AddressInfo).port }))
