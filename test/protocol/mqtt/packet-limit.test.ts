import { array, assert, integer, nat, property } from 'fast-check'
import { generate } from 'mqtt-packet'
import { expect, test } from 'vitest'
import { PacketSizes } from '../../../protocol/mqtt/packet-limit.ts'

const publish = (length: number): Buffer =>
  generate({
    cmd: 'publish',
    qos: 0,
    dup: false,
    retain: false,
    topic: 't',
    payload: Buffer.alloc(length, 0xff),
  })

/** Cuts bytes at random places. */
function chop(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end))
}

test('packets up to the limit pass for any division of the bytes, and a longer one is refused at its header', () => {
  assert(
    property(
      array(integer({ min: 0, max: 900 }), { maxLength: 6 }),
      array(nat(), { maxLength: 12 }),
      (lengths, cuts) => {
        // The topic and its length take three bytes.
        const fitting = Buffer.concat(lengths.map((length) => publish(length)))
        const sizes = new PacketSizes(903)
        for (const chunk of chop(fitting, cuts)) expect(sizes.accept(chunk)).toBe(true)
        const header = publish(901).subarray(0, 3)
        expect(header.every((_, index) => sizes.accept(header.subarray(index, index + 1)))).toBe(false)
      },
    ),
  )
})

test('a packet with a length field of five bytes is malformed', () => {
  expect(new PacketSizes(2 ** 40).accept(Uint8Array.of(0x30, 0x80, 0x80, 0x80, 0x80, 0x01))).toBe(false)
})
