import { expect, test } from 'vitest'
import { clientTransport, type ClientLike } from '../../../protocol/mqtt/transport.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'

test('a message leaves in the same turn of the event loop, before the remaining work of that turn', async () => {
  const did: string[] = []
  const listeners = new Map<string, () => void>()
  const client: ClientLike = {
    stream: { uncork: () => did.push('leaves') },
    on: (event: string, listener: (error: Error) => void) =>
      listeners.set(event, () => listener(new Error())),
    subscribe: (filters, _options, done) => done(null, [], { granted: filters.map(() => 1) }),
    unsubscribe: (_filters, done) => done(),
    publish: () => did.push('written'),
    handleMessage() {},
    end() {},
  }
  const open = clientTransport({ clock: systemRuntime().clock, clientId: 'hub-1' }, () => client)
  const connected = new Promise<void>((resolve) => {
    const transport = open(
      { subscribe: ['down/#'] },
      {
        onConnect() {
          void transport.publish('up/result', '{}')
          did.push('other work')
          resolve()
        },
        onDisconnect() {},
        onMessage() {},
      },
    )
    listeners.get('connect')!()
  })
  await connected
  expect(did).toEqual(['written', 'leaves', 'other work'])
})
