export const bad = { name: 'bad', description: 'Bad.', inputSchema: { type: 'string' }, execute: () => 1 };
