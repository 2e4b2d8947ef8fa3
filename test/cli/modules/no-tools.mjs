export const helper = () => 'no tool';
