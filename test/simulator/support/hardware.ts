import { HardwareDescription } from '../../../protocol/model/hardware.ts'

/** A small hub: two bins and a cabinet on one line, a second cabinet and a fridge on another. */
export const smallHub: HardwareDescription = HardwareDescription.parse({
  hubId: 1,
  controllers: [
    {
      id: 'front',
      port: 'ports/front',
      devices: [
        { kind: 'bin', number: 1 },
        { kind: 'bin', number: 2 },
        {
          kind: 'cabinet',
          number: 1,
          shelves: [
            { shelf: 1, rows: 3, depth: 5 },
            { shelf: 2, rows: 2, depth: 2 },
          ],
        },
      ],
    },
    {
      id: 'back',
      port: 'ports/back',
      devices: [
        { kind: 'cabinet', number: 2, shelves: [{ shelf: 1, rows: 2, depth: 5 }] },
        { kind: 'fridge', number: 1, targetCelsius: 4 },
      ],
    },
  ],
  gpio: {
    chipLabel: 'larder-sim',
    lines: [
      { name: 'main_lock', offset: 0, direction: 'out' },
      { name: 'main_door', offset: 1, direction: 'in' },
      { name: 'fridge_1_left_lock', offset: 2, direction: 'out' },
      { name: 'fridge_1_left_door', offset: 3, direction: 'in' },
    ],
  },
})
