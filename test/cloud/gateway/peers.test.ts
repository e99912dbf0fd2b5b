import { expect, test } from 'vitest'
import { Peers } from '../../../cloud/gateway/peers.ts'
import type { Here } from '../../../protocol/mqtt/between-clouds.ts'

/** A process that receives its own messages when the test asks for it. */
function process() {
  const said: Here[] = []
  let tick = (): void => {}
  let changes = 0
  const peers = new Peers({
    clock: {
      now: () => 0,
      monotonic: () => 0,
      after(_, task) {
        tick = task
        return () => {}
      },
    },
    processId: 'own',
    beatMs: 1000,
    silentBeats: 4,
    publish: (_, message) => void said.push(message as Here),
    onChange: () => (changes += 1),
  })
  peers.connected()
  return {
    peers,
    changes: () => changes,
    /** Returns its latest message. */
    echo: () => peers.onHere(said.at(-1)!),
    second: () => tick(),
    hear: (id: string, serving = true) => peers.onHere({ process_id: id, serving, beat: 1 }),
  }
}

test('a new process waits a second for answers, for any number of answers', () => {
  const { peers, echo, hear, second } = process()
  echo()
  hear('a')
  echo()
  hear('b')
  echo()
  expect(peers.knowsOthers).toBe(false)
  second()
  expect(peers.knowsOthers).toBe(false)
  echo()
  expect(peers.knowsOthers).toBe(true)
  expect(peers.serving).toEqual(['a', 'b', 'own'])
})

test('another process counts as gone after four own beats without it, and answers to newcomers are not beats', () => {
  const { peers, echo, hear, second } = process()
  hear('a')
  for (const name of ['b', 'c', 'd', 'e', 'f']) {
    hear(name, false)
    echo()
  }
  expect(peers.serving).toEqual(['a', 'own'])
  for (let beats = 1; beats <= 4; beats += 1) {
    expect(peers.serving).toEqual(['a', 'own'])
    second()
    echo()
    echo()
  }
  expect(peers.serving).toEqual(['own'])
})

test('a process that does not receive its own messages regards every other process as alive', () => {
  const { peers, hear, second } = process()
  hear('a')
  for (let beats = 0; beats < 20; beats += 1) second()
  expect(peers.serving).toEqual(['a', 'own'])
})

test('a will and a message that a process stops serving take effect at once', () => {
  const { peers, hear, changes } = process()
  hear('a')
  hear('b')
  expect(changes()).toBe(2)
  peers.onGone({ process_id: 'a' })
  hear('b', false)
  expect(peers.serving).toEqual(['own'])
  expect(changes()).toBe(4)
  hear('b', false)
  expect(changes()).toBe(4)
})
