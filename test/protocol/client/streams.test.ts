import { expect, test } from 'vitest'
import { createClient, type LarderError } from '../../../protocol/client/client.ts'
import { messagesOf } from '../../../protocol/client/stream.ts'
import { isActive, OrderStatus } from '../../../protocol/model/order-status.ts'
import { all, lost, neverAnswered, refused, scripted } from './scripted.ts'

const streamOf = (...texts: string[]): Response =>
  new Response(
    new ReadableStream({
      start(controller) {
        for (const text of texts) controller.enqueue(new TextEncoder().encode(text))
        controller.close()
      },
    }),
    { headers: { 'Content-Type': 'text/event-stream' } },
  )

test('a live stream resumes after its last message, and ends when the service refuses it', async () => {
  const { client, asked } = scripted([
    streamOf('id: evt_1\ndata: {"id":"evt_1"}\n\n', ': still here\n\n'),
    lost(),
    streamOf('id: evt_2\ndata: {"id":"evt_2"}\n\n'),
    refused(401, 'token_expired'),
  ])
  const seen: string[] = []
  const reading = (async () => {
    for await (const { id } of client.live('GET /owners/events/stream', { after: 'evt_0' })) seen.push(id)
  })()
  await expect(reading).rejects.toThrow('token_expired')
  expect(seen).toEqual(['evt_1', 'evt_2'])
  expect(asked.map(({ headers }) => headers['Last-Event-ID'])).toEqual(['evt_0', 'evt_1', 'evt_1', 'evt_2'])
})

test('the client follows an order to its final state and no further', async () => {
  const order = (status: number) => `id: ${status}\ndata: {"processing_status":${status}}\n\n`
  const { client, asked } = scripted([streamOf(order(20)), streamOf(order(30), order(60), order(70))])
  const seen = await all(client.followOrder({ userId: 1, orderId: 2 }))
  expect(seen.map(({ processing_status }) => processing_status)).toEqual([20, 30, 60])
  expect(asked).toHaveLength(2)
  for (const status of Object.values(OrderStatus))
    expect([status, isActive(status)]).toEqual([status, status < 60])
})

/** A sleep that is short, and longer than an answer needs. */
const soon = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, 20))

test('the client reopens a stream that is silent', async () => {
  const silent = new Response(new ReadableStream({ start() {} }))
  const answers = [silent, streamOf('data: {"processing_status":60}\n\n')]
  const client = createClient({
    baseUrl: 'https://larder.example',
    system: { fetch: () => Promise.resolve(answers.shift()!), sleep: soon },
  })
  expect(await all(client.followOrder({ userId: 1, orderId: 2 }))).toHaveLength(1)
})

test('the client reopens a stream that never begins, and reports each failed opening', async () => {
  let opened = 0
  const failures: string[] = []
  const client = createClient({
    baseUrl: 'https://larder.example',
    system: {
      fetch: (_, { signal }) =>
        ++opened < 3 ? neverAnswered(signal) : Promise.resolve(streamOf('data: {"id":"evt_1"}\n\n')),
      sleep: soon,
    },
  })
  const onFailure = ({ code }: { code: string }) => void failures.push(code)
  for await (const { id } of client.live('GET /owners/events/stream', { onFailure })) {
    expect(id).toBe('evt_1')
    break
  }
  expect(failures).toEqual(['timeout', 'timeout'])
})

test('a CSV report that never begins, or stops in the middle, ends with a timeout', async () => {
  const halves = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode('a,b\r\n')),
  })
  for (const fetch of [
    (_: string, { signal }: RequestInit) => neverAnswered(signal),
    () => Promise.resolve(new Response(halves)),
  ]) {
    const client = createClient({ baseUrl: 'https://larder.example', timeoutMs: 20, system: { fetch } })
    const error = await all(client.csv('GET /owners/audit')).catch((thrown: unknown) => thrown)
    expect((error as LarderError).failure).toMatchObject({ code: 'timeout', status: 0 })
  }
})

test('the client closes the connection of a stream that its reader leaves', async () => {
  let wasCancelled = false
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode('data: {"id":"evt_1"}\n\n')),
    cancel: () => void (wasCancelled = true),
  })
  const { client } = scripted([new Response(endless)])
  for await (const _ of client.live('GET /owners/events/stream')) break
  expect(wasCancelled).toBe(true)
})

test('the client parses server-sent events for any division into chunks', async () => {
  const text = ': hello\r\nid: 1\r\ndata: {"a":\r\ndata: "é"}\r\n\r\nretry: 5\n\nid:2\rdata:x\r\rdata: lost'
  const bytes = new TextEncoder().encode(text)
  for (let size = 1; size < bytes.length; size++) {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.subarray(at, at + size))
        controller.close()
      },
    })
    expect([size, await all(messagesOf(body))]).toEqual([
      size,
      [
        { id: '1', data: '{"a":\n"é"}' },
        { id: '2', data: 'x' },
      ],
    ])
  }
})
