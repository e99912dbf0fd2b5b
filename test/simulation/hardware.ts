import { HardwareDescription } from '../../protocol/model/hardware.ts'

const shelves = [
  { shelf: 1, rows: 3, depth: 12 },
  { shelf: 2, rows: 3, depth: 12 },
]
const SIDES = ['left', 'middle', 'right'] as const

const parts = {
  controllers: [
    {
      id: 'bins',
      port: 'bins',
      devices: [
        { kind: 'bin', number: 1, capacity: 4 },
        { kind: 'bin', number: 2, capacity: 4 },
      ],
    },
    {
      id: 'vending',
      port: 'vending',
      devices: [
        { kind: 'cabinet', number: 1, shelves },
        { kind: 'cabinet', number: 2, shelves },
      ],
    },
    { id: 'cold', port: 'cold', devices: [{ kind: 'fridge', number: 1 }] },
  ],
  gpio: {
    chipLabel: 'simulated',
    lines: [
      { name: 'main_lock', offset: 0, direction: 'out' },
      { name: 'main_door', offset: 1, direction: 'in' },
      ...SIDES.flatMap((side, index) => [
        { name: `fridge_1_${side}_lock`, offset: 2 + 2 * index, direction: 'out' },
        { name: `fridge_1_${side}_door`, offset: 3 + 2 * index, direction: 'in' },
      ]),
    ],
  },
  fridgeDoors: [{ fridge: 1, left: 1, middle: 1, right: 2 }],
}

/** A small hub: three controllers, two bins, two cabinets, a fridge. */
export const simulatedHardware = hardwareOf(1)

export function hardwareOf(hubId: number): HardwareDescription {
  return HardwareDescription.parse({ hubId, ...parts })
}

export interface StockedFacing {
  product_id: number
  cabinet: number
  shelf: number
  row: number
  primary: boolean
  units: number
}

export const PRODUCTS = 6

/**
 * Hub 1's shelves with six products, of which the first two have a second facing. Stock is small, so that
 * customers compete for the last unit.
 */
export const stockedFacings: readonly StockedFacing[] = [
  facing(1, 1, 1, 1, true, 3),
  facing(1, 2, 1, 1, false, 3),
  facing(2, 1, 1, 2, true, 4),
  facing(2, 1, 2, 2, false, 2),
  facing(3, 1, 1, 3, true, 6),
  facing(4, 2, 1, 2, true, 6),
  facing(5, 2, 2, 1, true, 2),
  facing(6, 2, 2, 3, true, 8),
]

/** The same shelves with the hub's own products: 1–6 belong to hub 1, 7–12 to hub 2. */
export function facingsOf(hubId: number): readonly StockedFacing[] {
  return stockedFacings.map((one) => ({ ...one, product_id: productOf(hubId, one.product_id) }))
}

/** A hub's id of the n-th product of the assortment. */
export const productOf = (hubId: number, nth: number): number => (hubId - 1) * PRODUCTS + nth

function facing(
  product_id: number,
  cabinet: number,
  shelf: number,
  row: number,
  primary: boolean,
  units: number,
): StockedFacing {
  return { product_id, cabinet, shelf, row, primary, units }
}
