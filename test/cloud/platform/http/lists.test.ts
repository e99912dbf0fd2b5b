import { expect, test } from 'vitest'
import { answerList } from '../../../../cloud/platform/http/lists.ts'

test('an export reads no further pages while its reader takes none, and ends with the last page', async () => {
  let reads = 0
  const pages = 100
  const stream = (await answerList({ query: { limit: 1 }, wantsOther: true }, ['page'], async () => {
    reads += 1
    const isLast = reads === pages
    return { data: [{ page: reads }], next_cursor: isLast ? null : String(reads), has_more: !isLast }
  })) as ReadableStream<Uint8Array>
  const reader = stream.getReader()
  await reader.read()
  for (let turn = 0; turn < 1000; turn += 1) await new Promise((done) => setImmediate(done))
  expect(reads).toBeLessThanOrEqual(3)
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    text += new TextDecoder().decode(value)
  }
  expect([reads, text.split('\r\n').length]).toEqual([pages, pages])
})
