import type { Patch } from '../../simulation/mutants.ts'

/** A typical firmware fault as a patch of the bundled firmware, and the rule that detects it. */
export interface PlantedFault {
  name: string
  /** The rule's number in the serial SPEC §11. */
  rule: number
  patches: readonly Patch[]
}

const planted = (rule: number, name: string, file: string, find: string, replace: string): PlantedFault => ({
  rule,
  name,
  patches: [{ file, find, replace }],
})

const FIRMWARE = 'simulator/firmware/firmware.ts'
const MEMORY = 'simulator/firmware/operation-memory.ts'
const QUEUE = 'simulator/firmware/frame-queue.ts'
const SLOTS = 'simulator/firmware/slots.ts'
const BEHAVIOURS = 'simulator/firmware/behaviours.ts'

export const plantedFaults: readonly PlantedFault[] = [
  planted(
    29,
    'FWQ is acknowledged and not answered',
    FIRMWARE,
    "this.#queue.send({ type: 'FW', ...this.#options.slots.about() })",
    'this.#options.slots.about()',
  ),
  planted(30, 'a gap between blocks is stored', SLOTS, "if (at !== stored) return 'bad_argument'", ''),
  planted(31, 'the signature is not verified', SLOTS, 'verify(null, body, ', '!verify(null, body, '),
  planted(
    32,
    'blocks are written while a motor runs',
    FIRMWARE,
    "if (this.#operations.isAnyRunning()) return this.#refuse(frame.seq, 'busy')",
    '',
  ),
  planted(33, 'a trial has no end', SLOTS, "else if (state === 'trial') this", 'else if (former < 0) this'),
  planted(
    2,
    'a carriage return spoils a line',
    'protocol/serial/codec.ts',
    "line.endsWith('\\r') ? line.slice(0, -1) : line",
    'line',
  ),
  planted(
    11,
    'a repeated id with another act is a new operation',
    FIRMWARE,
    'if (this.#memory.get(command.op)) {',
    'if (this.#memory.get(command.op)?.act === command.act) {',
  ),
  planted(
    13,
    'positions are never reported',
    'simulator/firmware/reporter.ts',
    '        this.#stale.add(behaviour.device)\n',
    '',
  ),
  planted(20, 'drops are not counted', MEMORY, 'drops: record.drops + units', 'drops: record.drops'),
  planted(
    27,
    'every event has the same number',
    'simulator/firmware/reporter.ts',
    'ev: ++this.#number, dev: device, ...sensed',
    'ev: 1, dev: device, ...sensed',
  ),
  planted(
    1,
    'the checksum is not checked',
    'protocol/serial/codec.ts',
    "if (crc16(covered!) !== Number.parseInt(crc!, 16)) return { ok: false, error: 'crc' }",
    'void crc',
  ),
  planted(
    3,
    'an unknown frame is ignored',
    FIRMWARE,
    "this.#refuse(decoded.seq, decoded.error === 'unknown_type' ? 'unsupported' : 'bad_argument')",
    'return',
  ),
  planted(4, 'each HELLO is a new session', FIRMWARE, 'if (host === this.#host) return', ''),
  planted(5, 'no frame is repeated', QUEUE, '    repeat(FIRST_REPEAT_MS)\n', ''),
  planted(6, 'no window: everything is sent at once', QUEUE, 'const WINDOW = 8', 'const WINDOW = 64'),
  planted(6, 'END overtakes OPS', QUEUE, "(type === 'END' && body.type === 'OPS')", 'false'),
  planted(
    7,
    'a stale host is obeyed',
    FIRMWARE,
    "if (command.host !== this.#host) return this.#refuse(seq, 'stale_host')",
    '',
  ),
  planted(8, 'a silent host keeps its session', FIRMWARE, 'else this.#endSession()', ''),
  planted(
    9,
    'a host of any version gets a session',
    FIRMWARE,
    'if (proto > this.#options.version || proto < OLDEST_SERIAL_VERSION) {',
    'if (proto === 0) {',
  ),
  planted(
    10,
    'no deduplication',
    FIRMWARE,
    'if (this.#memory.get(command.op)) {',
    'if (this.#memory.get("")) {',
  ),
  planted(
    12,
    'a device already in position counts as moved',
    MEMORY,
    'return this.#conclude(command, { moved: false }, 0)\n    if (isSupplyWeak',
    'return this.#conclude(command, { moved: true }, 0)\n    if (isSupplyWeak',
  ),
  planted(14, 'max=0 is accepted', MEMORY, "if (command.max === 0) return 'bad_argument'", ''),
  planted(15, 'refusals are forgotten', FIRMWARE, 'this.#refusals.get(command.op) ?? ', ''),
  planted(
    16,
    'a second operation at a device that runs one',
    MEMORY,
    "if (this.#running.has(command.dev) || this.#isReceiving(command.dev)) return 'busy'",
    '',
  ),
  planted(
    16,
    'a bin moves while a unit falls into it',
    MEMORY,
    'this.#running.has(command.dev) || this.#isReceiving(command.dev)',
    'this.#running.has(command.dev)',
  ),
  planted(
    17,
    'the lift’s interlock is ignored',
    BEHAVIOURS,
    "!isDoor(act) && bin.door() !== 'closed' ? 'interlock' : undefined",
    "!isDoor(act) && bin.door() === 'unknown' ? 'interlock' : undefined",
  ),
  planted(
    17,
    'units are dispensed into an open bin',
    BEHAVIOURS,
    "target.door() === 'closed' && target.lift() === 'down'",
    "target.lift() === 'down'",
  ),
  planted(
    18,
    'the maximum duration is ignored',
    MEMORY,
    'clock.after(command.max, ',
    'clock.after(command.max + 100_000, ',
  ),
  planted(
    18,
    'a motion stopped on its way reports moved=0',
    MEMORY,
    "entry.run.finish({ why: 'timeout', moved: true })",
    "entry.run.finish({ why: 'timeout', moved: false })",
  ),
  planted(
    19,
    'a result is sent and not stored',
    MEMORY,
    "    memory.update(command.op, { state: why ? 'failed' : 'done', why, moved, ms })\n    onResult(memory.result(command.op))",
    "    onResult({ ...memory.result(command.op), state: why ? 'failed' : 'done', why, moved, ms })",
  ),
  planted(
    21,
    'a new owner finds the old memory',
    MEMORY,
    'if (wipe) this.#format()',
    'if (wipe) this.#owner = undefined',
  ),
  planted(
    22,
    'LST lists the newest first',
    MEMORY,
    '[...this.#records.values()].slice(-count || this.#records.size)',
    '[...this.#records.values()].reverse().slice(0, count)',
  ),
  planted(
    23,
    'an overwritten operation is reported as none',
    MEMORY,
    'const forgotten = op <= this.#overwritten',
    'const forgotten = op < ""',
  ),
  planted(
    24,
    'an operation still runs after a power failure',
    MEMORY,
    "    if (record.state === 'running') this.#write({ record: { ...record, state: 'interrupted' } })",
    '    void record',
  ),
  planted(
    25,
    'the record is written with the result',
    MEMORY,
    'begin(record: StoredOperation): void {\n    this.#write({ record })',
    'begin(record: StoredOperation): void {\n    this.#apply({ record })',
  ),
  planted(
    28,
    'a steady temperature is not repeated',
    BEHAVIOURS,
    'if (!onlyChanges && clock.monotonic() - reportedAt >= REPEAT_MS * pace) return true',
    'void REPEAT_MS',
  ),
  planted(
    26,
    'the memory is formatted at each start',
    MEMORY,
    'if (!this.#id) this.#format()',
    'this.#format()',
  ),
]
