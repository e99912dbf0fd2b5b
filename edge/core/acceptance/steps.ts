import {
  deviceId,
  fridgeDoor,
  fridgeSides,
  MAIN_DOOR,
  type HardwareDescription,
} from '../../../protocol/model/hardware.ts'
import type { AcceptanceStepText } from '../../../protocol/model/acceptance.ts'
import type { Location } from '../../../protocol/model/location.ts'
import {
  binSubject,
  cabinetSubject,
  controllerSubject,
  doorSubject,
  fridgeSubject,
  rowSubject,
} from '../../../protocol/model/subject.ts'

/** The hub's action in an acceptance step, and the sensors that it checks. */
export type Check =
  | { of: 'controller'; controller: string }
  | { of: 'door'; door: string; hasLock: boolean; hasSensor: boolean }
  | { of: 'temperature'; fridge: number; limitCelsius: number }
  /** Whether the locks hold without power. The hub cannot see this. */
  | { of: 'locks' }
  | { of: 'open' | 'content' | 'close' | 'lift'; bin: number }
  | { of: 'row'; location: Location }

/** One step of a hub's acceptance: the action, and the observations that are needed to pass. */
export interface AcceptanceStep extends AcceptanceStepText {
  check: Check
}

const LOOK = 'Let the hub test'

/**
 * The steps that a hub needs, each after the steps that it depends on. Devices need their controller, and
 * rows need working bins.
 */
export function stepsOf(hardware: HardwareDescription): AcceptanceStep[] {
  const devices = hardware.controllers.flatMap((controller) => controller.devices)
  const sorted = devices.toSorted((a, b) => a.number - b.number)
  return [
    ...hardware.controllers.map(controllerStep),
    ...lockSteps(hardware),
    ...doorSteps(hardware, MAIN_DOOR, doorSubject(MAIN_DOOR)),
    ...sorted.flatMap((device) =>
      device.kind === 'fridge'
        ? [
            temperatureStep(device.number, device.limitCelsius),
            ...fridgeSides.flatMap((side) =>
              doorSteps(hardware, fridgeDoor(device.number, side), fridgeSubject(device.number)),
            ),
          ]
        : [],
    ),
    ...sorted.flatMap((device) => (device.kind === 'bin' ? binSteps(device.number) : [])),
    ...sorted.flatMap((device) =>
      device.kind === 'cabinet'
        ? device.shelves.flatMap(({ shelf, rows }) =>
            Array.from({ length: rows }, (_, index) =>
              rowStep({ cabinet: device.number, shelf, row: index + 1 }),
            ),
          )
        : [],
    ),
  ]
}

function controllerStep({ id, devices }: HardwareDescription['controllers'][number]): AcceptanceStep {
  return {
    id: `controller/${id}`,
    part: controllerSubject(id),
    title: `Controller ${id} answers`,
    does: `The hub asks the board on this line who it is. It drives ${devices.map(deviceId).join(', ')}.`,
    expected: 'It is connected, and belongs to this hub and this line.',
    button: LOOK,
    moves: false,
    check: { of: 'controller', controller: id },
  }
}

/** The hub locks by software, which fails if its board fails. Therefore locks must hold without power (I7). */
function lockSteps({ gpio }: HardwareDescription): AcceptanceStep[] {
  const locks = gpio.lines.filter(({ name }) => name.endsWith('_lock')).length
  if (locks === 0) return []
  return [
    {
      id: 'locks',
      part: controllerSubject('gpio'),
      title: 'The locks hold without power',
      does: `Close all doors. Take the power from the ${locks} locks, at their supply or fuse, and try each door.`,
      expected: 'No door opens: the locks are fail-secure. Give them their power again.',
      button: 'I have tried each door',
      moves: false,
      check: { of: 'locks' },
    },
  ]
}

const capital = (text: string): string => text[0]!.toUpperCase() + text.slice(1)

/** The door's display name: `main door`, `fridge 1, left door`. */
function doorName(door: string): string {
  const [, fridge, side] = /^fridge_(\d)_(\w+)$/.exec(door) ?? []
  return fridge === undefined ? `${door} door` : `fridge ${fridge}, ${side} door`
}

function doorSteps({ gpio }: HardwareDescription, door: string, part: string): AcceptanceStep[] {
  const has = (line: string): boolean => gpio.lines.some(({ name }) => name === line)
  const [hasLock, hasSensor] = [has(`${door}_lock`), has(`${door}_door`)]
  if (!hasLock && !hasSensor) return []
  const what = [hasLock && 'lock', hasSensor && 'sensor'].filter(Boolean).join(' and ')
  return [
    {
      id: `door/${door}`,
      part,
      title: `${capital(doorName(door))}: ${what}`,
      does: [
        'Close the door first.',
        hasLock ? 'The hub unlocks it for a minute at most.' : 'The hub watches its sensor for a minute.',
        'Open it, and close it again.',
      ].join(' '),
      expected: [
        hasLock && 'The lock of this door opens. All others stay closed.',
        hasSensor && 'The sensor reports closed, open, closed.',
        hasLock && 'It is locked again.',
      ]
        .filter(Boolean)
        .join(' '),
      button: hasLock ? 'Unlock it' : 'Watch it',
      moves: true,
      check: { of: 'door', door, hasLock, hasSensor },
    },
  ]
}

function temperatureStep(fridge: number, limitCelsius: number): AcceptanceStep {
  return {
    id: `temperature/${fridge}`,
    part: fridgeSubject(fridge),
    title: `Fridge ${fridge}: temperature`,
    does: 'The hub reads the sensor. Compare with a thermometer of your own.',
    expected: `At most ${limitCelsius} °C, and the same as the thermometer, to a degree or two.`,
    button: LOOK,
    moves: false,
    check: { of: 'temperature', fridge, limitCelsius },
  }
}

function binSteps(bin: number): AcceptanceStep[] {
  const step = (
    of: Extract<Check, { bin: number }>['of'],
    title: string,
    texts: Pick<AcceptanceStep, 'does' | 'expected' | 'button'>,
  ): AcceptanceStep => ({
    id: `${of}/${bin}`,
    part: binSubject(bin),
    title: `Bin ${bin}: ${title}`,
    ...texts,
    moves: true,
    check: { of, bin },
  })
  return [
    step('open', 'its door opens', {
      does: 'The hub opens the door.',
      expected: 'The door of this bin opens, and its switch reports it. All others stay closed.',
      button: 'Open the door',
    }),
    step('content', 'its sensor sees what lies in it', {
      does: 'Lay something into the open bin, then take it out.',
      expected:
        'This bin reports that something lies in it, then that it is empty. Other bins report nothing.',
      button: 'Watch the sensor',
    }),
    step('close', 'its door closes', {
      does: 'Take your hands out and stand clear. The hub closes the door.',
      expected: 'The door of this bin closes, and its switch reports it.',
      button: 'My hands are out: close the door',
    }),
    step('lift', 'its lift goes up and down', {
      does: 'The door must be closed. The hub raises the lift, and lowers it.',
      expected:
        'The lift of this bin goes up and comes down, and its switches report it. Other lifts do not move.',
      button: 'Raise and lower the lift',
    }),
  ]
}

function rowStep(location: Location): AcceptanceStep {
  const { cabinet, shelf, row } = location
  return {
    id: `row/${cabinet}/${shelf}/${row}`,
    part: cabinetSubject(cabinet),
    title: `${capital(rowSubject(location))} gives one unit`,
    does: 'See that a unit stands in the row. The hub turns the row once, over a bin that is empty and closed.',
    expected: 'One unit of this row falls. Drop sensor and bin detect it. No other row turns.',
    button: 'Turn the row once',
    moves: true,
    check: { of: 'row', location },
  }
}
