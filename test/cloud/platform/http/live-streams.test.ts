import { expect, test } from 'vitest'
import { LiveStreams } from '../../../../cloud/platform/http/live-streams.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { virtualRuntime } from '../../../world/clock.ts'
import { testContext } from '../../../world/context.ts'

onEachDatabase('live streams', (open) => {
  test('a reader gets the end of its stream if the source fails, and is not polled any more', async () => {
    const streams = new LiveStreams<string>(testContext(await open(), virtualRuntime()))
    let isAway = false
    const { body } = streams.open('a', {
      poll: () =>
        isAway ? Promise.reject(new Error('the database is away')) : Promise.resolve('data: 1\n\n'),
    })
    const reader = body.getReader()
    expect((await reader.read()).done).toBe(false)
    isAway = true
    await expect(reader.read()).rejects.toThrow('the database is away')
    expect([streams.topics(), streams.isEmpty]).toEqual([[], true])
  })

  test('a reader gets the end if all streams end during a poll of its source', async () => {
    const streams = new LiveStreams<string>(testContext(await open(), virtualRuntime()))
    let answer: (text: string) => void = () => {}
    const { body } = streams.open('a', { poll: () => new Promise((resolve) => (answer = resolve)) })
    const end = body.getReader().read()
    await expect.poll(() => answer.length).toBe(1)
    streams.end()
    answer('')
    expect((await end).done).toBe(true)
    expect(streams.isEmpty).toBe(true)
  })
})
