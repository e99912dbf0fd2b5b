import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { GatheringSocket } from '../../../../cloud/platform/store/postgres.ts'

let socket: GatheringSocket
let received: Promise<string>
const server = createServer()

beforeEach(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  received = once(server, 'connection').then(([peer]) => text(peer as Socket))
  socket = new GatheringSocket()
  socket.connect((server.address() as AddressInfo).port, '127.0.0.1')
  await once(socket, 'connect')
})

afterEach(() => {
  socket.destroy()
  server.close()
})

test('data written in one turn is sent at once, in order', async () => {
  const calls = [vi.spyOn(socket, '_write'), vi.spyOn(socket, '_writev')]
  const count = () => calls.reduce((sum, { mock }) => sum + mock.calls.length, 0)
  for (const word of ['begin;', 'lock;', 'read;']) socket.write(word)
  await new Promise(setImmediate)
  expect(count()).toBe(1)
  socket.write('commit;')
  await new Promise(setImmediate)
  expect(count()).toBe(2)
  socket.end()
  expect(await received).toBe('begin;lock;read;commit;')
})

test('data written in the last turn before the end is not lost', async () => {
  socket.write('terminate')
  socket.end()
  expect(await received).toBe('terminate')
})
