import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { GatheringSocket } from '../../../../cloud/platform/store/gathering-socket.ts'

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

test('what is written in one turn leaves at once, in its order', async () => {
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

test('what was written in the turn in which it is ended is not lost', async () => {
  socket.write('terminate')
  socket.end()
  expect(await received).toBe('terminate')
})
