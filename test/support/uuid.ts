/** Ids of orders, commands and counts in tests. */
export const uuid = (number: number): string => `018f0000-0000-7000-8000-${String(number).padStart(12, '0')}`
