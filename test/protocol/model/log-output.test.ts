import { expect, test } from 'vitest'
import { logOutput } from '../../../protocol/model/log-output.ts'

const failure = (code: string): Error => Object.assign(new Error(code), { code })

/** An output that fails while `disk.fails` is set, and accepts `atOnce` bytes at a time. */
function setUp(atOnce = Infinity) {
  const disk = { fails: undefined as string | undefined, text: '' }
  const output = logOutput((bytes) => {
    if (disk.fails !== undefined) throw failure(disk.fails)
    const part = bytes.subarray(0, atOnce)
    disk.text += part.toString('latin1')
    return part.length
  })
  return { disk, output }
}

test.each(['ENOSPC', 'EIO', 'EROFS', 'EDQUOT', 'EPIPE', 'EBADF'])(
  'a log with an output that fails with %s loses lines, counts them, and throws nothing',
  (code) => {
    const { disk, output } = setUp()
    output.write('one\n')
    disk.fails = code
    for (let line = 0; line < 3; line += 1) output.write('lost\n')
    disk.fails = undefined
    output.write('two\n')
    output.write('three\n')
    const [one, counted, ...rest] = disk.text.split('\n')
    expect([one, ...rest]).toEqual(['one', 'two', 'three', ''])
    expect(JSON.parse(counted!)).toMatchObject({ level: 40, lost: 3, reason: code })
  },
)

test('a line that is accepted in parts is written completely', () => {
  const { disk, output } = setUp(3)
  output.write('a line of the log\n')
  expect(disk.text).toBe('a line of the log\n')
})

test('a slow reader of the log loses no line', () => {
  let busy = 3
  let text = ''
  const output = logOutput((bytes) => {
    if (busy-- > 0) throw failure('EAGAIN')
    text += String(bytes)
    return bytes.length
  })
  output.write('a line\n')
  expect(text).toBe('a line\n')
})
